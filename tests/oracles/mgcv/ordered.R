# mgcv::gam with an ordered factor in by=: difference smooths. Run in this directory after fits.R: Rscript ordered.R
library(mgcv)
source("json.R")
options(contrasts = c("contr.treatment", "contr.treatment"))  # REML depends on the coding of what is not penalised
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("fits_rows.csv")
order <- c("c", "a", "b", "f", "e", "d")
rows$o <- factor(rows$g, levels = order, ordered = TRUE)
rows$u <- factor(rows$g, levels = order)
record <- function(text, python, family) {
  b <- gam(as.formula(text), family, rows, method = "REML", control = control)
  p <- predict(b, se.fit = TRUE)
  list(formula = python, family = family$family, score = unname(b$gcv.ubre), edf_total = sum(b$edf), labels = arr(vapply(b$smooth, function(s) s$label, "")),
       coefficients = arr(unname(coef(b)[2:6])), eta = arr(unname(p$fit)), se = arr(unname(p$se.fit)))
}
out <- list(record("y ~ o + s(x1, k=8) + s(x1, by=o, k=8)", "y ~ factor(o) + s(x1, k=8) + s(x1, by=o, k=8)", gaussian()),
            record("count ~ o + s(x1, k=6) + s(x1, by=o, k=6)", "count ~ factor(o) + s(x1, k=6) + s(x1, by=o, k=6)", poisson()),
            record("y ~ u + s(x1)", "y ~ factor(u) + s(x1)", gaussian()))
write_json(list(mgcv = as.character(packageVersion("mgcv")), order = arr(order), fits = arr(out)), "ordered.json", 9)
