# mgcv::gam where the curves of levels stand far above the noise, so that rounding of their functions shows in the
# criterion. Run in this directory: Rscript signal.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
set.seed(8)
n <- 300
d <- data.frame(x = round(runif(n), 4), g = sample(c("a", "b", "c"), n, TRUE))
f <- with(d, sin(6 * x) + x^2 + (g == "b") * cos(9 * x))
d$y <- round(f + .002 * rnorm(n), 5); d$c <- rpois(n, exp(f + .5))
d$g <- factor(d$g)
record <- function(text, family) {
  b <- gam(as.formula(text), family, d, method = "REML", control = control)
  p <- predict(b, se.fit = TRUE)
  cat(sprintf("%-25s %.6f edf %.3f\n", text, b$gcv.ubre, sum(b$edf)))
  list(formula = text, family = family$family, score = unname(b$gcv.ubre), eta = arr(unname(p$fit)), se = arr(unname(p$se.fit)))
}
fits <- list(record("y ~ g + s(x, by=g)", gaussian()), record("c ~ s(x, by=g) - 1", poisson()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), table = list(x = arr(d$x), g = arr(as.character(d$g)), y = arr(d$y), c = arr(d$c)), fits = arr(fits)), "signal.json", 9)
