# Subjects in two conditions: curves of the conditions with one λ (id), subjects' curves as factor smooths; within
# subjects, their contrasts as factor smooths too. Run in this directory after conditions_rows.py: Rscript conditions.R
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
rows <- read.csv("conditions_rows.csv")
at <- seq(-3, 3, length.out = 25)
knots <- list(y = seq(-pi, pi, length.out = 7))
record <- function(which) {
  d <- subset(rows, design == which); d$who <- factor(d$who); d$cond <- factor(d$cond)
  d$cell <- interaction(d$who, d$cond, drop = TRUE); d$w <- ifelse(d$cond == "b", 1, -1) / sqrt(2)
  text <- "z ~ cell + s(y, by = cond, bs = \"cc\", k = 7, id = 1) + s(y, who, bs = \"fs\", k = 7, xt = list(bs = \"cc\"))"
  if (which == "within") text <- paste(text, "+ s(y, who, by = w, bs = \"fs\", k = 7, xt = list(bs = \"cc\"))")
  b <- gam(as.formula(text), binomial(), d, method = "REML", knots = knots, control = control)
  part <- function(condition) {
    new <- data.frame(y = at, cond = condition, who = "s0", cell = paste0("s0.", if (which == "within") condition else "a"), w = 0)
    X <- predict(b, new, type = "lpmatrix"); X[, !grepl("^s\\(y\\):cond", colnames(X))] <- 0; X
  }
  curve <- function(X) list(fit = arr(as.vector(X %*% coef(b))), se = arr(sqrt(rowSums((X %*% b$Vp) * X))))
  cat(sprintf("%s %.5f sp %s\n", which, b$gcv.ubre, paste(round(log(b$sp), 2), collapse = " ")))
  list(design = which, at = arr(at), a = curve(part("a")), b = curve(part("b")), difference = curve(part("b") - part("a")))
}
write_json(list(mgcv = as.character(packageVersion("mgcv")), fits = arr(list(record("between"), record("within")))), "conditions.json", 9)
