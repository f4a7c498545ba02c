# The R side of engine.py: `Rscript engine.R table.bin columns` waits for "bam", "gam", "each" or "by" on standard input and answers with seconds.
# `Rscript engine.R table.bin columns bam result.txt` fits once and writes the result (for timing a whole process).
suppressMessages(library(mgcv))
args <- commandArgs(trailingOnly = TRUE)
names <- strsplit(args[2], ",")[[1]]
size <- file.info(args[1])$size / 8
d <- as.data.frame(matrix(readBin(args[1], "double", size), ncol = length(names), dimnames = list(NULL, names)))
if (length(args) > 2 && args[3] == "fit") {  # one of the regimes: seconds of the fit and of its summary, medians of
  d$g <- factor(d$g)                           # three, or of those begun within 10 s
  took <- told <- numeric(0)
  while (length(took) < 3 && sum(took) < 10) {
    gc()
    took <- c(took, system.time(b <- bam(as.formula(args[4]), binomial, d, discrete = TRUE, nthreads = 2))[["elapsed"]])
    told <- c(told, system.time(summary(b))[["elapsed"]])
  }
  cat(median(took), median(told), "\n"); quit(save = "no")
}
d$subject <- factor(d$subject)
ends <- list(angle = c(-pi, pi))
form <- cls ~ s(delta, k = 10) + s(dcenter, k = 40) + s(px, py, k = 40) + s(angle, bs = "cc", k = 20)
form.by <- cls ~ s(delta, k = 10, by = subject) + s(dcenter, k = 40, by = subject) + s(px, py, k = 40, by = subject) +
  s(angle, bs = "cc", k = 20, by = subject)
discrete <- function(formula, data) bam(formula, binomial, data, knots = ends, discrete = TRUE, nthreads = 2)
run <- function(what) switch(what,
  bam = discrete(form, d),
  gam = gam(form, binomial, d, knots = ends, method = "REML"),
  each = lapply(split(d, d$subject), function(part) discrete(form, part)),
  by = discrete(form.by, d))
if (length(args) > 2) {
  fit <- run(args[3])
  fits <- if (inherits(fit, "gam")) list(fit) else fit
  writeLines(sapply(fits, function(f) paste(sum(f$edf), deviance(f))), args[4])
  quit(save = "no")
}
input <- file("stdin", "r")
cat("ready\n")
while (length(line <- readLines(input, 1)) > 0) {
  gc()
  cat(system.time(run(line))[["elapsed"]], "\n")
}
