# mgcv::gam with counts of up to 4 million: weights of rows span six orders of magnitude, penalties are 10⁻⁹ of XᵀWX and less.
# Run in this directory: Rscript counts.R. Writes counts_rows.csv and counts.json.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-11, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
made <- function(seed, n, levels, top, spread, noise) {
  set.seed(seed)
  x <- signif(runif(n), 6); g <- sample(levels, n, TRUE)
  f <- spread * rnorm(levels)[g] + sin(6 * x + runif(levels, 0, 6)[g]) + noise * rnorm(n)
  data.frame(table = seed, x = x, g = sprintf("l%02d", g), count = rpois(n, exp(f - max(f) + log(top))))
}
rows <- rbind(made(1, 300, 12, 4e6, 3, .1), made(2, 100, 5, 4e6, 3, 0))
write.csv(rows, "counts_rows.csv", row.names = FALSE, quote = FALSE)
rows <- read.csv("counts_rows.csv"); rows$g <- factor(rows$g)
record <- function(table, text) {
  d <- droplevels(rows[rows$table == table, ])
  b <- suppressWarnings(gam(as.formula(text), poisson, d, method = "REML", control = control))
  p <- predict(b, se.fit = TRUE)
  at <- unique(round(seq(1, nrow(d), length.out = 60)))
  cat(sprintf("%d %-50s %.5f edf %.3f %s %s sp %s\n", table, text, b$gcv.ubre, sum(b$edf), b$converged, b$outer.info$conv, paste(signif(b$sp, 4), collapse = " ")))
  list(table = table, formula = gsub('"', "'", text, fixed = TRUE), score = unname(b$gcv.ubre), sp = arr(unname(b$sp)),
       edf_total = sum(b$edf), rows = arr(at - 1), eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])))
}
out <- list()
for (table in 1:2) for (text in c("count ~ s(x, g, bs = \"fs\", m = 1)", "count ~ s(g, bs = \"re\") + s(x, g, bs = \"fs\", m = 1)",
                                  "count ~ s(x) + s(x, g, bs = \"fs\", m = 1, k = 5)"))
  out <- c(out, list(record(table, text)))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "counts.json", 9)
