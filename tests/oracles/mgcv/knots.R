# mgcv::gam with thin plates on every distinct row (up to 2,000, mgcv's max.knots), on R's own `quakes`.
# Run in this directory: Rscript knots.R. Writes knots_quakes.csv and knots.json; `far` are rows outside the data.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
write.csv(quakes, "knots_quakes.csv", row.names = FALSE, quote = FALSE)
d <- read.csv("knots_quakes.csv")
far <- data.frame(lat = c(-40, -9, -25), long = c(164, 190, 170), depth = c(700, 30, 300))
record <- function(text, family) {
  b <- gam(as.formula(text), family, d, method = "REML", control = control)
  p <- predict(b, se.fit = TRUE); out <- predict(b, far, se.fit = TRUE)
  at <- unique(round(seq(1, nrow(d), length.out = 60)))
  cat(sprintf("%-50s %-8s %.5f AIC %.4f edf %.3f\n", text, family$family, b$gcv.ubre, AIC(b), sum(b$edf)))
  list(formula = text, family = family$family, score = unname(b$gcv.ubre), aic = AIC(b), sp = arr(unname(b$sp)), edf_total = sum(b$edf),
       rows = arr(at - 1), eta = arr(unname(p$fit[at])), se = arr(unname(p$se.fit[at])), far = lapply(far, arr), far_eta = arr(unname(out$fit)), far_se = arr(unname(out$se.fit)))
}
out <- list(record("stations ~ s(lat, long, k=50)", poisson()), record("mag ~ s(lat, long, k=30) + s(depth)", gaussian()),
            record("stations ~ s(lat, long, depth, k=60)", poisson()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(out)), "knots.json", 9)
