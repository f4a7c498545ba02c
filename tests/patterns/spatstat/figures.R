# spatstat's own figures for tests/patterns: fits by ppm(method = "logi") on given dummy points, and
# summary functions (F and J are in distances.R).
# Writes points.csv, dummies.csv, fits.csv, functions.csv, raster.csv and gam.csv beside itself; the data sets are spatstat.data's, and
# "marked" and "star" are simulated here.
#   Rscript tests/patterns/spatstat/figures.R
suppressMessages({library(spatstat.data); library(spatstat.geom); library(spatstat.random); library(spatstat.explore)
                  library(spatstat.model); library(mgcv)})
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
spatstat.options(areainter.polygonal = TRUE)   # areas by circular arcs, not on a grid
digits <- function(x) sprintf("%.15g", x)
set.seed(20)

square <- owin(c(0, 1), c(0, 1))
types <- rmh(rmhmodel(cif = "straussm", par = list(beta = c(220, 160), gamma = matrix(c(.3, .7, .7, .4), 2),
                      radii = matrix(c(.05, .03, .03, .04), 2)), w = square, types = c("a", "b")), verbose = FALSE)
star <- owin(poly = list(list(x = c(0, 4, 4, 2, 0), y = c(0, 0, 3, 2, 3)), list(x = c(1, 1, 2, 2), y = c(1, 1.6, 1.6, 1))))
starry <- rpoispp(function(x, y) 12 + 6 * x, win = star)
write.csv(data.frame(pattern = rep(c("marked", "star"), c(npoints(types), npoints(starry))),
                     x = digits(c(types$x, starry$x)), y = digits(c(types$y, starry$y)),
                     mark = c(as.character(marks(types)), rep("", npoints(starry)))),
          file.path(here, "points.csv"), row.names = FALSE, quote = FALSE)

dummies <- fits <- NULL
scheme <- function(name, X, how, nd) {
  Q <- quadscheme.logi(X, dummytype = how, nd = nd)
  D <- Q$dummy
  m <- if (is.marked(D)) as.character(marks(D)) else ""
  dummies <<- rbind(dummies, data.frame(set = name, x = digits(D$x), y = digits(D$y), mark = m))
  Q
}
note <- function(case, set, Q, fit) {
  d <- fit$internal$glmdata
  d$off <- -log(d$.logi.B)
  ours <- subset(d, .logi.ok)
  g <- fit$internal$glmfit
  # ppm's own iterations stop at 1e-8: once more on its rows, to rounding
  again <- update(g, data = ours, subset = NULL, weights = NULL, control = glm.control(epsilon = 1e-14, maxit = 100),
                  start = coef(g), formula = formula(g))
  se <- sqrt(diag(vcov(fit, logi.action = "silent")))
  fits <<- rbind(fits, data.frame(case = case, set = set, how = Q$param$how, rho = digits(Q$param$rho),
                                  term = names(coef(fit)), estimate = digits(coef(again)), se = digits(se)))
  cat(case, max(abs(coef(again) - coef(fit))), "\n")
}
# spatstat's areas by arcs are wrong for a few dummy points (it takes the neighbours of the Dirichlet tessellation, and
# some others matter): those on which its areas by arcs and on a grid differ are left out
agreed <- function(name, Q, r) {
  X <- Q$data; D <- Q$dummy
  D <- D[bdist.points(D) >= 2 * r]  # those that become rows
  by <- lapply(c(TRUE, FALSE), function(exact) areaGain(D, X, r, W = Window(X), exact = exact, ngrid = 512) / (pi * r^2))
  D <- D[abs(by[[1]] - by[[2]]) < 2e-4]
  dummies <<- rbind(dummies, data.frame(set = name, x = digits(D$x), y = digits(D$y), mark = ""))
  Q <- quadscheme.logi(X, D)
  Q$param <- list(how = "given", rho = npoints(D) / area(Window(X)))
  Q
}
Q <- scheme("bei", bei, "binomial", 45)
# trees half-way between two pixels: the lower one; slopes to five digits, as the tests have them
U <- union.quad(Q)
at <- list(x = pmax(U$x - 1e-6, 0), y = pmax(U$y - 1e-6, 0))
fit <- ppm(Q, ~ elev + grad, method = "logi", covariates = data.frame(elev = bei.extra$elev[at], grad = round(bei.extra$grad[at], 5)))
note("bei", "bei", Q, fit)
d <- subset(fit$internal$glmdata, .logi.ok)
smooth <- gam(.logi.Y ~ s(elev, bs = "cr") + s(grad, bs = "cr"), binomial, d, offset = -log(.logi.B), method = "REML")
at <- seq(1, nrow(d), by = 97)
eta <- predict(smooth, d[at, ], type = "link")
write.csv(data.frame(row = at, elev = digits(d$elev[at]), grad = digits(d$grad[at]), log_intensity = digits(as.vector(eta))),
          file.path(here, "gam.csv"), row.names = FALSE, quote = FALSE)

Q <- scheme("pines", swedishpines, "poisson", 22)
note("pines strauss", "pines", Q, ppm(Q ~ 1, Strauss(9), method = "logi"))
note("pines strauss none", "pines", Q, ppm(Q ~ x, Strauss(9), method = "logi", correction = "none"))
note("pines strauss periodic", "pines", Q, ppm(Q ~ 1, Strauss(9), method = "logi", correction = "periodic"))
note("pines geyer", "pines", Q, ppm(Q ~ 1, Geyer(7, 2), method = "logi"))
some <- agreed("pines area", Q, 7)
note("pines area", "pines area", some, ppm(some ~ 1, AreaInter(7), method = "logi"))
note("pines hardcore", "pines", Q, ppm(Q ~ 1, Hardcore(2), method = "logi"))
note("pines strausshard", "pines", Q, ppm(Q ~ 1, StraussHard(9, 2), method = "logi"))
Q <- scheme("redwood", redwoodfull, "binomial", 26)
note("redwood strauss", "redwood", Q, ppm(Q ~ 1, Strauss(.05), method = "logi", project = FALSE))
note("redwood geyer", "redwood", Q, ppm(Q ~ y, Geyer(.05, 4), method = "logi"))
some <- agreed("redwood area", Q, .04)
note("redwood area", "redwood area", some, ppm(some ~ 1, AreaInter(.04), method = "logi"))
note("redwood hardcore", "redwood", Q, ppm(Q ~ 1, Hardcore(.002), method = "logi"))
Q <- scheme("marked", types, "poisson", 24)
note("marked", "marked", Q, ppm(Q ~ marks, MultiStrauss(matrix(c(.05, .03, .03, .04), 2)), method = "logi"))
write.csv(dummies, file.path(here, "dummies.csv"), row.names = FALSE, quote = FALSE)
write.csv(fits, file.path(here, "fits.csv"), row.names = FALSE, quote = FALSE)

functions <- NULL
keep <- function(case, f, columns) {
  at <- round(seq(2, nrow(f), length.out = 25))
  f <- as.data.frame(f)[at, ]
  for (column in columns)
    functions <<- rbind(functions, data.frame(case = case, column = column, r = digits(f$r), value = digits(f[[column]])))
}
for (name in c("pines", "redwood", "star")) {
  X <- switch(name, pines = swedishpines, redwood = redwoodfull, star = starry)
  K <- if (name == "star") c("isotropic", "border") else c("isotropic", "translate", "border", "none")
  keep(paste(name, "K"), Kest(X, correction = K), switch(name, star = c("iso", "border"), c("iso", "trans", "border", "un")))
  keep(paste(name, "G"), Gest(X, correction = c("km", "rs", "han", "none")), c("km", "rs", "han", "raw"))
  keep(paste(name, "pcf"), pcf(X, correction = "isotropic"), "iso")
}
# a coarse raster with spatstat's own distances on it, for the estimators of F by themselves; its distances never equal
# an r, where spatstat's km and rs take d < r
coarse <- exactdt(ppp(swedishpines$x, swedishpines$y, window = as.mask(Window(swedishpines), eps = 2.87)))
write.csv(data.frame(d = digits(coarse$d), b = digits(coarse$b)), file.path(here, "raster.csv"), row.names = FALSE, quote = FALSE)
keep("raster F", Fest(swedishpines, eps = 2.87, correction = c("km", "rs")), c("km", "rs"))
lambda <- exp(-5 + 0.01 * swedishpines$x)
keep("pines Kinhom", Kinhom(swedishpines, lambda, correction = c("isotropic", "translate")), c("iso", "trans"))
keep("marked Kcross", Kcross(types, "a", "b", correction = "isotropic"), "iso")
q <- quadrat.test(swedishpines, 4, 3)
functions <- rbind(functions, data.frame(case = "pines quadrat", column = "X2", r = digits(q$parameter), value = digits(q$statistic)))
write.csv(functions, file.path(here, "functions.csv"), row.names = FALSE, quote = FALSE)
