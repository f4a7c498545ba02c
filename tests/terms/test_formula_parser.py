"""The string form: same terms as the objects, never evaluated, and errors that list what is known."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unnorm.errors import TermError
from unnorm.terms import Terms, factor, linear, parse, s, t2, te, ti
from unnorm.terms.arithmetic import is_arithmetic, needs

PAPER = "class ~ s(delta,k=10) + s(dcenter,k=40) + s(fxc_prev,fyc_prev,k=40) + s(angle,bs='cc',k=20)"


def test_paper_formula_is_the_same_as_objects():
    terms = parse(PAPER)
    assert terms.response == "class"  # a Python keyword is a fine column name
    objects = s("delta", k=10) + s("dcenter", k=40) + s("fxc_prev", "fyc_prev", k=40) + s("angle", bs="cc", k=20)
    assert terms.terms == objects.terms
    assert terms.intercept


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("s(x)", s("x")),
        ("s('reaction time', k=5)", s("reaction time", k=5)),
        ('s(x, bs="cc", knots=(-pi, pi))', s("x", bs="cc", knots=(-math.pi, math.pi))),
        ("s(x, bs='cc', knots=[0, 2*pi])", s("x", bs="cc", knots=(0, 2 * math.pi))),
        ("te(x, y, k=c(5, 7), bs=c('cr','cc'), fx=TRUE)", te("x", "y", k=(5, 7), bs=("cr", "cc"), fx=True)),
        ("ti(x, y, z, d=(2, 1), bs=('tp', 'cr'))", ti("x", "y", "z", d=(2, 1), bs=("tp", "cr"))),
        ("te(x, y, z, d=c(2, 1))", te("x", "y", "z", d=(2, 1), bs=("tp", "cr"))),  # mgcv's default
        ("t2(x, y, z, d=(1, 2), bs='ps')", t2("x", "y", "z", d=(1, 2), bs=("ps", "tp"))),
        ("s(x, by=g) ", s("x", by="g")),
        ("s(x, by=factor(subject))", s("x", by=factor("subject"))),
        ("s(factor(subject), bs='re')", s(factor("subject"), bs="re")),
        ("s(x, sp=1e-3, m=1)", s("x", sp=0.001, m=1)),
        ("te(x, y, sp=(0.1, None))", te("x", "y", sp=(0.1, None))),
        ("s(x, y, knots={'x': (1, 2, 3), 'y': (4, 5, 6)})", s("x", "y", knots={"x": (1, 2, 3), "y": (4, 5, 6)})),
        ("x", linear("x")),
        ("'a b'", linear("a b")),
        ("linear(x, z)", linear("x", "z")),
        ("factor(g)", factor("g")),
    ],
)
def test_text_and_objects_agree(text, terms):
    (term,) = parse(text)
    assert term == terms
    assert hash(term) == hash(terms)
    assert parse(str(term)).terms == (term,)  # what a term prints can be read back


def test_intercept_and_response():
    assert parse("y ~ 0 + s(x)").intercept is False
    assert parse("y ~ s(x) - 1").intercept is False
    assert parse("y ~ -1 + s(x)").intercept is False
    assert str(parse("y ~ +s(x) + +z")) == "y ~ s(x) + z"
    assert parse("y ~ 1 + s(x)").intercept is True
    assert parse("y ~ 1").terms == ()
    assert parse("~ s(x)").response is None
    assert parse("'my y' ~ s(x)").response == "my y"
    assert parse("s('a ~ b')").terms == (s("a ~ b"),)
    assert str(parse("y ~ s(x) + factor(g) - 1")) == "y ~ 0 + s(x) + factor(g)"
    assert parse("s(a) + (s(b) + s(c))").terms == (s("a") + s("b") + s("c")).terms
    assert parse(s("x")).terms == (s("x"),)
    assert (parse("0 + s(x)") + s("y")).intercept is False


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spline(x)", "'s', 'te', 'ti', 't2', 'linear', 'factor'"),
        ("s(x, df=5)", "'k', 'bs', 'by'"),
        ("s(x, bs='xx')", "'tp', 'cr', 'cc', 'ps', 'cp', 'ts', 'cs'"),
        ("te(x, y, bs='fs')", "'tp', 'cr', 'cc', 'ps', 'cp'"),
        ("s(log(x))", "column names"),
        ("s(x + y)", "column names"),
        ("s(x, k=open('f'))", "literals"),
        ("s(x, k=__import__('os').getcwd())", "literals"),
        ("s(x, k=2**100000)", "literals"),
        ("s(x).__class__", "not a term"),
        ("s(x) * s(y)", "not a term"),
        ("s(x) - s(y)", "subtracted"),
        ("lambda: 0", "cannot be read"),
        ("s(x, **{'k': 3})", "takes"),
        ("s(*x)", "column names"),
        ("s(x, k=3, k=4)", "twice"),
        ("s(x", "cannot be read"),
        ("", "no terms"),
        ("y ~ x ~ z", "at most one"),
        ("log(y) ~ x", "left side"),
        ("s()", "at least one"),
        ("s(x, x)", "twice"),
        ("s(x, k=2.5)", "whole number"),
        ("s(x, k=1e999)", "whole number"),
        ("s(x, k=-3)", "whole number"),
        ("s(x, fx=1)", "True or False"),
        ("s(x, sp='a')", "numbers"),
        ("s(x, knots='a')", "finite numbers"),
        ("s(x, bs='cc', knots=(0, 1e999))", "finite numbers"),
        ("s(x, y, bs='cr')", "te()"),
        ("s(a, b, c, d)", "1 to 3"),
        ("s(x, bs='cr', m=2)", "no m"),
        ("te(x)", "two or more"),
        ("te(x, y, k=(1, 2, 3))", "margins"),
        ("te(x, y, z, d=(2, 2))", "adds up"),
        ("te(x, y, z, d=(2, 1), bs=('cr', 'cr'))", "must be 'tp'"),
        ("factor(a, b)", "one column"),
        ("2", "not a term"),
    ],
)
def test_errors_say_what_is_known(text, says):
    with pytest.raises(TermError) as error:
        parse(text)
    assert says in str(error.value)


def test_limits():
    with pytest.raises(TermError, match="characters"):
        parse("s(x)" + " " * 30_000)
    with pytest.raises(TermError, match="at most 500 terms"):
        parse(" + ".join(f"x{i}" for i in range(600)))
    for nasty in ("(" * 5000 + "x" + ")" * 5000, "s(x, k=" + "(" * 60 + "1" + ",)" * 60 + ")", "-" * 9000 + "1"):
        with pytest.raises(TermError):
            parse(nasty)
    assert len(parse(" + ".join(f"s(x{i})" for i in range(400)))) == 400
    with pytest.raises(TermError, match="string"):
        parse(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "*".join(f"a{i}" for i in range(40)),  # 2⁴⁰ terms
        ":".join(["(a + b + c)"] * 40),
        " + ".join("*".join(f"{c}{i}" for i in range(8)) for c in "abc"),
    ],
)
def test_products_of_too_many_terms_are_refused_before_they_are_made(text):
    with pytest.raises(TermError, match="at most 500 terms"):
        parse(text)


@pytest.mark.parametrize("text", ["I(x^{0})", "I(x^-{0})", "s(x, k={0})", "s(x, sp={0})", "s(x, m={0})"])
def test_numbers_of_many_digits_are_refused(text):
    with pytest.raises(TermError):
        parse("y ~ " + text.format("9" * 400), table=True)


def test_numbers_that_are_none_are_refused_in_objects_too():
    for options in ({"k": 10**400}, {"sp": 10**400}, {"sp": float("inf")}, {"m": 10**400}):
        with pytest.raises(TermError):
            s("x", **options)


def test_names_stay_as_they_are_written():
    # Python's parser would make a Greek mu of the micro sign, and one character of e and an accent
    for name in ("\u00b5m", "\ufb01t", "e\u0301"):
        assert parse(f"y ~ s({name}) + {name} + offset(log({name}))", table=True).columns == (name,)
        assert parse(f"y ~ offset(log({name}))", table=True).offsets == (f"log({name})",)
        assert is_arithmetic(f"log({name})")
        assert needs(f"log({name})") == (name,)


def test_quotes_within_quotes_are_names():
    for name in ('it\'s "so": ~ ^', "as.factor(x", "back\\"):
        text = str(Terms((s(name), s("z"))))
        assert parse(text).terms == (s(name), s("z"))
    assert str(parse("as.factor(x)")) == "factor(x)"


@given(st.text(alphabet="s(xy,)=k1'~+- .bcteif[]{}*\"\\\n", max_size=60))
def test_any_text_gives_terms_or_a_term_error(text):
    with contextlib.suppress(TermError):  # any other error fails
        assert isinstance(parse(text), Terms)


@given(
    st.integers(3, 40),
    st.sampled_from(["tp", "cr", "cc", "ps", "cp"]),
    st.booleans(),
    st.text(alphabet="abc xyz_", min_size=1, max_size=8).filter(lambda t: t.strip() == t),
)
def test_what_a_smooth_prints_reads_back(k, bs, fx, name):
    term = s(name, k=k, bs=bs, fx=fx, by="w" if fx else None)
    assert parse(str(Terms((term,)))).terms == (term,)


def test_main_effects_come_before_their_products():
    assert str(parse("y ~ a*b*c")) == "y ~ a + b + c + a:b + a:c + b:c + a:b:c"
    assert not parse("y ~ s(a) + (s(b) - 1)").intercept
    assert parse("y ~ s(a) + (s(b) + s(c))").intercept


def test_terms_may_be_summed():
    whole = sum([s("x"), factor("g"), s("z", k=5)])
    assert isinstance(whole, Terms)
    assert whole == s("x") + factor("g") + s("z", k=5)
    with pytest.raises(TypeError):
        sum([s("x")], 1)  # pyright: ignore
