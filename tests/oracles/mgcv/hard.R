# mgcv::gam on what a referee tried: smooths with a common multiplier, a response far from zero, a category of numbers in an order
# of its own, longitudes beyond 180 degrees. Run in this directory: Rscript hard.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
set.seed(12)
n <- 150
d <- data.frame(x = runif(n), z = rnorm(n), w = rnorm(n) + .5, v = runif(n), k = sample(1:3, n, TRUE), lat = asin(runif(n, -1, 1)) * 180 / pi, lon = runif(n, -180, 180))
f <- d$w * (sin(6 * d$x) + .4 * d$z^2)
d$y <- f + .4 * rnorm(n); d$b <- as.numeric(runif(n) < plogis(f)); d$c <- rpois(n, exp(.4 * f)); d$g <- sin(d$lon / 40) * cos(d$lat / 50) + .3 * rnorm(n)
d <- as.data.frame(lapply(d, signif, 6))
d$far <- 1e8 + round(d$y, 4)
d$K <- factor(d$k, levels = c(3, 1, 2))
fits <- list(
  list("y ~ s(x, by=w) + s(z, by=w)", "gaussian"), list("b ~ s(x, by=w) + s(z, by=w) + s(v)", "binomial"),
  list("c ~ s(x, by=w, bs='cr') + te(z, v, by=w, k=4)", "poisson"), list("far ~ s(x) + te(z, w, k=4)", "gaussian"),
  list("y ~ K + s(x, by=K)", "gaussian"), list("y ~ s(x) + s(K, bs='re') + s(K, w, bs='re')", "gaussian"), list("g ~ s(lat, lon, bs='sos', k=20)", "gaussian"))
out <- lapply(fits, function(one) {
  b <- gam(as.formula(gsub("'", '"', one[[1]])), data = d, family = one[[2]], method = "REML", control = control)
  p <- predict(b, se.fit = TRUE)
  list(formula = one[[1]], family = one[[2]], score = as.numeric(b$gcv.ubre), edf = sum(b$edf), eta = arr(as.numeric(p$fit) - if (grepl("^far", one[[1]])) 1e8 else 0), se = arr(as.numeric(p$se.fit)))
})
write_json(list(table = lapply(d[!names(d) %in% c("K", "far")], function(x) arr(x)), fits = arr(out)), "hard.json", 9)
# rows on which one term may say what another says: mgcv's REML with cloglog (hard_pbc.csv is survival's pbc)
p <- survival::pbc; p <- p[!is.na(p$trt), ]
p <- data.frame(dead = as.integer(p$status == 2), age = round(p$age, 2), bili = p$bili, albumin = p$albumin, sex = as.character(p$sex))
write.csv(p, "hard_pbc.csv", row.names = FALSE, quote = FALSE)
b <- gam(dead ~ s(log(bili)) + s(albumin) + sex + s(age, bs = "cr"), family = binomial("cloglog"), data = p, method = "REML", control = control)
cat("hard_pbc:", format(b$gcv.ubre[[1]], digits = 9), "\n")
