# Bases as mgcv builds them: smoothCon(absorb.cons=TRUE) on fits_rows.csv, PredictMat at new points, some outside the data.
# Run in this directory after fits.R: Rscript terms.R. Writes terms.json; the format is in README.md.
library(mgcv)
source("json.R")
data <- read.csv("fits_rows.csv", stringsAsFactors = TRUE)
set.seed(5)
m <- 60
new <- data.frame(x1 = round(runif(m, -.3, 1.3), 3), x2 = round(runif(m, -.1, 1.1), 3), x3 = round(runif(m, -1.2, 1.2), 3),
                  ang = round(runif(m, -6, 6), 3), z = round(rnorm(m, 1), 2), g = factor(rep(levels(data$g), length.out = m), levels(data$g)))
some <- round(-.05 + 1.1 * seq(0, 1, length.out = 40)^1.3, 4)  # not symmetric: there rounding decides mgcv's penalty scale
k2 <- list(x1 = round(runif(60), 3), x2 = round(runif(60), 3)); k3 <- c(k2, list(x3 = round(runif(60, -1, 1), 3)))
half <- list(ang = round(c(-pi, pi), 6))
cases <- list(                       # unnorm's text, knots
  list("s(x1)"), list("s(x1, k=15)", list(x1 = some)), list("s(x1, k=7, m=1)"), list("s(x1, k=7, m=3)"), list("s(x1, x2, k=12)", k2),
  list("s(x1, x2, k=14, m=3)", k2), list("s(x1, x2, x3, k=16)", k3), list("s(x1, x2)", k2),
  list("s(x1, bs='cr', k=7)"), list("s(x1, bs='cr', k=5)", list(x1 = c(0, .1, .5, .7, 1))),
  list("s(ang, bs='cc', k=8)"), list("s(ang, bs='cc', k=8)", half), list("s(ang, bs='cc', k=5)", list(ang = c(-3.2, -1, 0, 2, 3.2))),
  list("s(x1, bs='ps', k=9)"), list("s(x1, bs='ps', k=8, m=(1, 2))"), list("s(x1, bs='ps', k=8, m=(3, 1))"), list("s(x1, bs='ps', k=8, m=(2, 0))"),
  list("s(x1, bs='ps', k=8)", list(x1 = c(-.5, 1.5))), list("s(ang, bs='cp', k=8)"), list("s(ang, bs='cp', k=7, m=(1, 2))", half),
  list("s(ang, bs='cp', k=7, m=1)", half), list("s(g, bs='re')"), list("s(g, z, bs='re')"), list("s(z, bs='re')"),
  list("s(x1, g, bs='fs', k=5, m=1)"), list("s(x1, g, bs='fs', k=4)"),
  list("s(x1, by=g, k=5)"), list("s(x1, by=z, k=6)"), list("te(x1, x2, by=z, k=4)"), list("te(x1, x2, by=g, k=3)"),
  list("te(x1, x2)"), list("te(x1, ang, bs=('cr', 'cc'), k=(4, 6))", half), list("te(x1, x2, bs='tp', k=(5, 4))"), list("te(x1, x2, bs='ps', k=(5, 6))"),
  list("te(x1, ang, bs=('tp', 'cp'), k=(4, 6))", list(ang = c(-4, 4))), list("te(x1, x2, x3, d=(2, 1), bs=('tp', 'cr'), k=(7, 4))", k2), list("te(x1, x2, x3, k=3)"),
  list("ti(x1)"), list("ti(x1, x2)"), list("ti(x1, x2, bs='tp', k=(5, 4))"), list("ti(x1, ang, bs=('ps', 'cc'), k=(6, 6))", half))
r_text <- function(s) { s <- gsub("'", '"', s); gsub("=\\(([^()]*)\\)", "=c(\\1)", s) }
probe <- function(p) cos(outer(seq_len(p), 1:3))       # three directions in which the matrices are compared
out <- lapply(cases, function(case) {
  knots <- if (length(case) > 1) case[[2]] else NULL
  built <- smoothCon(eval(parse(text = r_text(case[[1]]))), data, knots, absorb.cons = TRUE)
  cat(sprintf("%-60s %s\n", case[[1]], paste(dim(built[[1]]$X), collapse = " x ")))
  keep <- unique(c(1, length(built)))
  list(term = case[[1]], knots = if (is.null(knots)) list() else lapply(knots, arr), count = length(built), kept = arr(keep - 1),
       smooths = arr(lapply(built[keep], function(s) list(label = s$label, ranks = arr(s$rank), null_dim = s$null.space.dim,
         S = arr(lapply(s$S, function(S) arr(S %*% probe(ncol(S))))), XtX = arr(crossprod(s$X) %*% probe(ncol(s$X))),
         new = arr(PredictMat(s, new)[seq_len(if (grepl("g\\b", case[[1]])) m else min(m, ncol(s$X) + 8)), , drop = FALSE])))))
})
write_json(list(mgcv = as.character(packageVersion("mgcv")), new = lapply(as.list(new), function(v) arr(if (is.factor(v)) as.character(v) else v)),
                cases = arr(out)), "terms.json", 10)
