# Fits with isotropic and translation weights of close pairs, on the dummy points of figures.R. Writes corrections.csv beside itself.
#   Rscript tests/patterns/spatstat/corrections.R
suppressMessages({library(spatstat.data); library(spatstat.geom); library(spatstat.model)})
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
digits <- function(x) sprintf("%.15g", x)
dummies <- read.csv(file.path(here, "dummies.csv"))
points <- read.csv(file.path(here, "points.csv"))
old <- read.csv(file.path(here, "fits.csv"))
square <- owin(c(0, 1), c(0, 1))
types <- with(subset(points, pattern == "marked"), ppp(x, y, window = square, marks = factor(mark)))
fits <- NULL
note <- function(case, X, set, terms, interaction, correction) {
  d <- dummies[dummies$set == set, ]
  D <- ppp(d$x, d$y, window = Window(X))
  if (is.marked(X)) marks(D) <- factor(d$mark)
  was <- old[old$set == set, ][1, ]
  Q <- quadscheme.logi(X, D)
  Q$param <- list(how = was$how, rho = was$rho)
  fit <- ppm(Q, terms, interaction, method = "logi", correction = correction)
  d <- fit$internal$glmdata
  d$off <- -log(d$.logi.B)
  g <- fit$internal$glmfit
  again <- update(g, data = subset(d, .logi.ok), subset = NULL, weights = NULL, control = glm.control(epsilon = 1e-14, maxit = 100),
                  start = coef(g), formula = formula(g))
  se <- tryCatch(sqrt(diag(vcov(fit, logi.action = "silent"))), error = function(e) { message(e); NA * coef(fit) })
  fits <<- rbind(fits, data.frame(case = case, set = set, how = was$how, rho = digits(was$rho), correction = correction,
                                  term = names(coef(fit)), estimate = digits(coef(again)), se = digits(se)))
  cat(case, correction, coef(again), se, "\n")
}
for (correction in c("isotropic", "translate")) {
  note("pines strauss", swedishpines, "pines", ~ 1, Strauss(9), correction)
  note("pines strausshard", swedishpines, "pines", ~ 1, StraussHard(9, 2), correction)
  note("redwood strauss", redwoodfull, "redwood", ~ y, Strauss(.05), correction)
  note("marked", types, "marked", ~ marks, MultiStrauss(matrix(c(.05, .03, .03, .04), 2)), correction)
}
# with isotropic weights spatstat's Geyer sees a pair from one end at data points and from the other at dummy points
note("redwood geyer", redwoodfull, "redwood", ~ y, Geyer(.05, 4), "translate")
write.csv(fits, file.path(here, "corrections.csv"), row.names = FALSE, quote = FALSE)
