# mgcv::gam with bs = "ad" of two covariates, on three data sets. Run in this directory after fits.R: Rscript adaptive.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
set.seed(17)
n <- 300; peak <- data.frame(x = round(runif(n), 4), z = round(runif(n), 4))
f <- with(peak, exp(-60 * ((x - .7)^2 + (z - .3)^2)) * 3 + .5 * x)
peak$y <- round(f + rnorm(n, sd = .3), 4); peak$count <- rpois(n, exp(f / 2)); peak$cls <- rbinom(n, 1, plogis(f - .7))
volcano_ <- expand.grid(i = seq(1, 87, 5), j = seq(1, 61, 4)); volcano_$height <- volcano[as.matrix(volcano_)]
quakes_ <- data.frame(lat = quakes$lat, long = quakes$long, depth = quakes$depth)[seq(1, 1000, 3), ]
tables <- list(peak = peak, volcano = volcano_, quakes = quakes_)
record <- function(text, family, data) {
  d <- tables[[data]]; b <- gam(as.formula(text), family, d, method = "REML", control = control)
  rows <- unique(as.integer(seq(1, nrow(d), length.out = 100))); p <- predict(b, d[rows, ], se.fit = TRUE)
  cat(sprintf("%-50s %-9s %.5f edf %.3f\n", text, family$family, b$gcv.ubre, sum(b$edf)))
  list(formula = text, family = family$family, data = data, score = unname(b$gcv.ubre), edf_total = sum(b$edf), sp = arr(unname(b$sp)),
       rows = arr(rows - 1), eta = arr(unname(p$fit)), se = arr(unname(p$se.fit)))
}
out <- list(
  record("y ~ s(x, z, bs = \"ad\", k = 8)", gaussian(), "peak"),
  record("count ~ s(x, z, bs = \"ad\", k = 7, m = 3)", poisson(), "peak"),
  record("cls ~ s(x, z, bs = \"ad\", k = 7, m = 1)", binomial(), "peak"),
  record("height ~ s(i, j, bs = \"ad\", k = 9, m = 3)", gaussian(), "volcano"),
  record("depth ~ s(lat, long, bs = \"ad\", k = 8, m = 3)", gaussian(), "quakes"),
  record("height ~ s(i, j, bs = \"ad\", k = 8, m = 4)", gaussian(), "volcano"))
write_json(list(mgcv = as.character(packageVersion("mgcv")), tables = lapply(tables, function(t) lapply(t, arr)), fits = arr(out)), "adaptive.json", 9)
