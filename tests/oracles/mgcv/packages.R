# mgcv::gam on data sets of R's own packages, several models each. Run in this directory: Rscript packages.R
# Writes packages.json: the columns used (rounded, at most 250 rows, without missing values) and what mgcv says of each fit.
library(mgcv)
source("json.R")
control <- gam.control(epsilon = 1e-10, newton = list(conv.tol = 1e-9, maxNstep = 5, maxSstep = 2, maxHalf = 60))
one <- function(name, package, object = name) { e <- new.env(); data(list = name, package = package, envir = e); as.data.frame(e[[object]]) }
g <- "gaussian"; b <- "binomial"; p <- "poisson"
sets <- list(
  airquality = list(one("airquality", "datasets"), g, c("log(Ozone) ~ s(Temp) + s(Wind)", "Ozone ~ te(Temp, Wind)", "Ozone ~ s(Temp, Wind, k=20)", "Ozone ~ s(Temp, bs='cr') + factor(Month)", "Ozone ~ ti(Temp) + ti(Wind) + ti(Temp, Wind)", "Ozone ~ s(Temp, by=factor(Month), k=5) + factor(Month)")),
  faithful = list(one("faithful", "datasets"), g, c("waiting ~ s(eruptions)", "waiting ~ s(eruptions, bs='ps', k=15)", "waiting ~ s(eruptions, k=30, m=3)", "waiting ~ s(eruptions, bs='cr', k=25)")),
  mtcars = list(one("mtcars", "datasets"), g, c("mpg ~ s(wt, k=6) + s(hp, k=6)", "mpg ~ s(wt, k=5) + factor(cyl)", "mpg ~ s(disp, k=6, m=1)")),
  trees = list(one("trees", "datasets"), g, c("Volume ~ s(Girth) + s(Height)", "Volume ~ te(Girth, Height, k=4)", "Volume ~ s(Girth, bs='cr', k=6) + linear(Height)")),
  iris = list(one("iris", "datasets"), g, c("Petal.Width ~ s(Petal.Length) + s(Species, bs='re')", "Sepal.Width ~ s(Sepal.Length, by=Species, k=6) + factor(Species)", "Sepal.Width ~ s(Sepal.Length) + s(Petal.Length)")),
  swiss = list(one("swiss", "datasets"), g, c("Fertility ~ s(Agriculture) + s(Education)", "Fertility ~ s(Catholic, bs='ps') + linear(Education)", "Fertility ~ te(Education, Catholic, k=4)")),
  warpbreaks = list(one("warpbreaks", "datasets"), p, c("breaks ~ factor(tension) + s(wool, bs='re')")),
  ChickWeight = list({ d <- one("ChickWeight", "datasets"); d[as.numeric(as.character(d$Chick)) %% 3 == 0, ] }, g, c("weight ~ s(Time, k=8) + s(Chick, bs='re')", "weight ~ s(Time, by=Diet, k=6) + factor(Diet)", "weight ~ s(Time, k=6) + s(Time, Chick, bs='fs', k=4, m=1)", "weight ~ s(Time, k=6) + s(Chick, Time, bs='re')")),
  CO2 = list(one("CO2", "datasets"), g, c("uptake ~ s(conc, k=6) + factor(Type) + s(Plant, bs='re')", "uptake ~ s(conc, by=Type, k=6) + factor(Type) + factor(Treatment)", "uptake ~ s(log(conc), k=5)")),
  Orange = list(one("Orange", "datasets"), g, c("circumference ~ s(age, k=6) + s(Tree, bs='re')", "circumference ~ s(age, k=5, bs='cr') + s(Tree, age, bs='re')")),
  pressure = list(one("pressure", "datasets"), g, c("pressure ~ s(temperature)", "pressure ~ s(temperature, k=15)")),
  stackloss = list(one("stackloss", "datasets"), g, c("stack.loss ~ s(Air.Flow, k=5) + s(Water.Temp, k=5)")),
  infert = list(one("infert", "datasets"), b, c("case ~ s(age) + factor(induced)", "case ~ s(age, k=6) + linear(spontaneous) + linear(parity)")),
  sunspot = list({ d <- data.frame(year = 1700:1949, spots = round(as.numeric(datasets::sunspot.year))[1:250]); d }, p, c("spots ~ s(year, k=40)", "spots ~ s(year, bs='cr', k=60)")),
  passengers = list(data.frame(t = 1:144, month = rep(1:12, 12), n = as.numeric(datasets::AirPassengers)), p, c("n ~ s(t) + s(month, bs='cc', k=10)", "n ~ te(t, month, bs=('cr', 'cc'), k=(5, 8))", "n ~ s(t, bs='ps') + s(month, bs='cp', k=8)")),
  nottem = list(data.frame(t = 1:240, m = factor(month.abb[rep(1:12, 20)]), month = rep(1:12, 20), temp = as.numeric(datasets::nottem)), g, c("temp ~ s(month, bs='cc', k=12) + s(t)", "temp ~ s(month, bs='cp', k=11) + s(t, bs='ps')", "temp ~ s(m, bs='re') + s(t)")),
  lynx = list(data.frame(t = 1:114, n = as.numeric(datasets::lynx)), g, c("log(n) ~ s(t, k=50)", "log(n) ~ s(t, bs='cr', k=40)")),
  discoveries = list(data.frame(t = 1:100, n = as.numeric(datasets::discoveries)), p, c("n ~ s(t)", "n ~ s(t, bs='cr', k=20)", "n ~ s(t, bs='ps', k=20)")),
  LakeHuron = list(data.frame(t = 1:98, level = as.numeric(datasets::LakeHuron)), g, c("level ~ s(t, k=30)", "level ~ s(t, m=1, k=20)")),
  esoph = list({ d <- one("esoph", "datasets"); data.frame(age = as.numeric(d$agegp), alc = as.numeric(d$alcgp), tob = as.numeric(d$tobgp), cases = d$ncases) }, p, c("cases ~ s(age, k=5) + s(alc, k=4)", "cases ~ s(age, k=5) + linear(alc) + linear(tob)")),
  InsectSprays = list(one("InsectSprays", "datasets"), p, c("count ~ s(spray, bs='re')")),
  mcycle = list(one("mcycle", "MASS"), g, c("accel ~ s(times, k=20)", "accel ~ s(times, bs='cr', k=25)", "accel ~ s(times, bs='ps', k=25)", "accel ~ s(times, k=40, m=3)")),
  GAGurine = list(one("GAGurine", "MASS"), g, c("log(GAG) ~ s(Age, k=20)", "GAG ~ s(Age, bs='cr', k=15)", "GAG ~ s(Age, k=30)")),
  Boston = list(one("Boston", "MASS"), g, c("medv ~ s(lstat) + s(rm)", "medv ~ s(lstat, bs='cr') + s(crim, k=15) + s(dis, bs='ps')", "medv ~ te(lstat, rm)", "medv ~ s(crim, bs='cr', k=20)")),
  birthwt = list(one("birthwt", "MASS"), b, c("low ~ s(lwt) + factor(race) + linear(smoke)", "low ~ s(age) + s(lwt, bs='cr')", "low ~ te(age, lwt, k=4)")),
  Pima = list(one("Pima.tr", "MASS"), b, c("(type == 'Yes') ~ s(glu) + s(bmi)", "(type == 'Yes') ~ s(age) + s(ped, bs='ps')", "(type == 'Yes') ~ s(glu, bmi, k=25)")),
  cats = list(one("cats", "MASS"), g, c("Hwt ~ s(Bwt) + factor(Sex)", "Hwt ~ s(Bwt, by=Sex, k=6) + factor(Sex)")),
  quine = list(one("quine", "MASS"), p, c("Days ~ factor(Eth) + factor(Sex) + s(Age, bs='re')")),
  epil = list({ d <- one("epil", "MASS"); d$subject <- factor(d$subject); d }, p, c("y ~ s(lbase) + factor(trt)", "y ~ s(lage) + s(lbase, bs='cr') + s(subject, bs='re')")),
  geyser = list(one("geyser", "MASS"), g, c("waiting ~ s(duration, k=15)", "waiting ~ s(duration, bs='cr')")),
  menarche = list({ d <- one("menarche", "MASS"); data.frame(age = d$Age, prop = d$Menarche / d$Total, total = d$Total) }, b, c("prop ~ s(age, k=8)"), "total"),
  wtloss = list(one("wtloss", "MASS"), g, c("Weight ~ s(Days)", "Weight ~ s(Days, bs='ps')")),
  columb = list(one("columb", "mgcv"), g, c("crime ~ s(income) + s(home.value)", "crime ~ s(x, y, k=20)", "crime ~ te(income, home.value, bs='ps', k=5)", "crime ~ s(income, bs='ts') + s(home.value, bs='cs')")),
  Machines = list({ d <- one("Machines", "nlme"); d$Worker <- factor(d$Worker, ordered = FALSE); d }, g, c("score ~ factor(Machine) + s(Worker, bs='re')")),
  Orthodont = list({ d <- one("Orthodont", "nlme"); d$Subject <- factor(as.character(d$Subject)); d }, g, c("distance ~ s(age, k=4) + s(Subject, bs='re')", "distance ~ linear(age) + s(Subject, bs='re') + s(Subject, age, bs='re')")),
  Soybean = list({ d <- one("Soybean", "nlme"); d$Plot <- factor(as.character(d$Plot)); d$Year <- factor(d$Year); d }, g, c("sqrt(weight) ~ s(Time, k=8) + s(Plot, bs='re')", "sqrt(weight) ~ s(Time, by=Year, k=6) + factor(Year)")),
  lung = list(one("cancer", "survival", "lung"), b, c("(status == 2) ~ s(age) + factor(sex)", "(status == 2) ~ s(age) + s(time)", "(status == 2) ~ s(ph.karno, k=5)")),
  veteran = list(one("cancer", "survival", "veteran"), g, c("log(time) ~ s(karno) + s(age)", "log(time) ~ s(karno, bs='cr', k=6) + s(celltype, bs='re')")),
  ethanol = list(one("ethanol", "lattice"), g, c("NOx ~ s(E, k=20)", "NOx ~ te(E, C, k=5)", "NOx ~ s(E, by=C, k=8)", "NOx ~ s(E) + s(C, k=5)")),
  environmental = list(one("environmental", "lattice"), g, c("ozone ~ s(temperature) + s(wind)", "ozone ~ s(radiation) + s(temperature, wind, k=20)", "log(ozone) ~ te(temperature, wind, bs='tp', k=4) + s(radiation)")),
  motor = list(one("motor", "boot"), g, c("accel ~ s(times, k=20)", "accel ~ s(times, m=1, k=20)")),
  melanoma = list(one("melanoma", "boot"), b, c("(status == 1) ~ s(thickness)", "(status == 1) ~ s(thickness, bs='cr') + s(age)", "(status == 1) ~ s(time) + linear(ulcer)")),
  urine = list(one("urine", "boot"), b, c("r ~ s(gravity) + s(ph)", "r ~ s(calc)")),
  kyphosis = list(one("kyphosis", "rpart"), b, c("(Kyphosis == 'present') ~ s(Age) + s(Number, k=5)", "(Kyphosis == 'present') ~ s(Age) + s(Start)", "(Kyphosis == 'present') ~ te(Age, Start, k=4)")),
  ruspini = list(one("ruspini", "cluster"), g, c("y ~ s(x)", "y ~ s(x, bs='cr', k=20)")))

plain <- function(x) gsub("([A-Za-z])[.]([A-Za-z])", "\\1_\\2", x)  # unnorm's formulas take plain words
to_r <- function(text) {
  text <- gsub("linear\\(([A-Za-z_.]+)\\)", "\\1", text)
  text <- gsub("=\\(", "=c(", text)
  gsub("'", '"', text)
}
take <- function(n, most) if (n <= most) seq_len(n) else unique(round(seq(1, n, length.out = most)))
short <- function(x) if (is.numeric(x)) signif(x, 6) else as.character(x)
out <- list(); tables <- list()
for (name in names(sets)) {
  s <- sets[[name]]; d <- s[[1]]; names(d) <- plain(names(d)); family <- s[[2]]; weights <- if (length(s) > 3) s[[4]] else NULL
  parts <- lapply(s[[3]], function(f) trimws(regmatches(plain(f), regexpr("~", plain(f)), invert = TRUE)[[1]]))
  # responses are made here: a column y1, y2, ... for each left side
  used <- weights
  formulas <- c()
  for (i in seq_along(parts)) {
    left <- parts[[i]][1]; right <- parts[[i]][2]
    for (inner in regmatches(right, gregexpr("log\\(([A-Za-z_.]+)\\)", right))[[1]]) {
      v <- sub("log\\((.*)\\)", "\\1", inner); d[[paste0("log_", v)]] <- log(d[[v]]); right <- sub(inner, paste0("log_", v), right, fixed = TRUE)
    }
    value <- as.numeric(eval(parse(text = left), d)); col <- if (left %in% names(d)) left else paste0("r", match(left, unique(sapply(parts, `[`, 1))))
    d[[col]] <- value
    formulas <- c(formulas, paste(col, "~", right)); used <- c(used, all.vars(as.formula(to_r(paste(col, "~", right)))))
  }
  d <- d[, unique(used), drop = FALSE]; d <- d[complete.cases(d), , drop = FALSE]
  d <- d[take(nrow(d), 250), , drop = FALSE]
  for (v in names(d)) if (is.numeric(d[[v]])) d[[v]] <- signif(d[[v]], 6) else d[[v]] <- factor(as.character(d[[v]]))
  tables[[name]] <- lapply(d, function(x) arr(unname(short(x))))
  for (f in formulas) {
    call <- list(formula = as.formula(to_r(f)), data = d, family = get(family)(), method = "REML", control = control)
    if (!is.null(weights)) call$weights <- d[[weights]]
    m <- try(suppressWarnings(do.call(gam, call)), silent = TRUE)
    if (inherits(m, "try-error")) { cat(name, f, "FAILED", m, "\n"); next }
    at <- take(nrow(d), 40); q <- predict(m, se.fit = TRUE)
    out[[length(out) + 1]] <- list(data = name, formula = f, family = family, weights = weights, sp = arr(unname(m$sp)), score = unname(m$gcv.ubre), edf = sum(m$edf),
      converged = identical(m$outer.info$conv, "full convergence"), rows = arr(at - 1), eta = arr(unname(q$fit[at])), se = arr(unname(q$se.fit[at])))
    cat(sprintf("%-14s %-60s %.4f %.3f %s\n", name, f, m$gcv.ubre, sum(m$edf), m$outer.info$conv))
  }
}
write_json(list(mgcv = as.character(packageVersion("mgcv")), r = R.version.string, tables = tables, fits = arr(out)), "packages.json", 8)
cat(length(out), "fits of", length(tables), "data sets\n")
