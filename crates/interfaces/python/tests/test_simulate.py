"""The simulator, against the command's figures; sweeps on Ray."""

import itertools
import json

import pytest

import bywash


def of_command(command, *args):
    [engine] = json.loads(command("simulate", "--json", *args))["engines"]
    return engine["results"]


def test_the_commands_figures(command):
    args = ["--requests", 3000, "--rate", 500, "--sweep", "slots=1,2"]
    for result in of_command(command, *args):
        run = bywash.simulate(result["policy"], requests=3000, rate=500, slots=result["point"]["slots"])
        assert run["modelled"] and run["engine"] == "niwa2005"
        for name, figure in result.items():
            if isinstance(figure, dict) and "median" in figure:
                assert run[name] == pytest.approx(figure["median"], rel=1e-9), (result["policy"], name)


def test_a_trace_is_learnt_from_and_served(command, tmp_path):
    trace = tmp_path / "trace.tsv"
    lines = [f"host{number * number % 17}\t{number // 3}\t{number * 7919 % 50_000}" for number in range(2000)]
    trace.write_text("host\ttime\tbytes\n" + "\n".join(lines) + "\n")
    for result in of_command(command, "--trace", trace, "--policy", "static,predict,tuned"):
        run = bywash.simulate(result["policy"], trace=trace)
        assert (run["requests"], run["learnt_from"]) == (1000, 1000)
        assert run["total_s"] == pytest.approx(result["total_s"]["median"], rel=1e-9)


def test_wrong_questions_are_told():
    for wrong, said in [
        ({"policy": "best"}, "no policy 'best'; there are software"),
        ({"slots": 0}, "slots: 0 makes no sense"),
        ({"spots": 1}, "'spots' cannot be swept"),
        ({"requests": 0}, "requests: 0 is not from 1 to 4294967295"),
        ({"requests": -1}, "requests: -1 is not from 1 to 4294967295"),
        ({"requests": 10**30}, "requests: 1000000000000000000000000000000 is not from 1"),
        ({"seed": -1}, "seed: -1 is not from 0 to 18446744073709551615"),
        ({"train": 10**400}, "train: it is not from"),
        ({"rate": 10**400}, "rate: it is not from"),
        ({"slots": 99, "requests": 10}, "1 to 10 can be tried"),
        ({"reconfiguration": 1e12, "requests": 100}, "146 years"),
    ]:
        with pytest.raises(ValueError, match=said) as raised:
            bywash.simulate(**wrong)
        assert isinstance(raised.value, bywash.BadArgument)
    with pytest.raises(TypeError, match="argument 'requests': "):
        bywash.simulate(requests="many")
    with pytest.raises(FileNotFoundError):
        bywash.simulate(engine="no such sheet")


def test_a_sweep_on_ray_is_each_with_each(cluster):
    import bywash.ray

    values = {"policy": ["tuned", "software"], "slots": [1, 2], "seed": range(3)}
    runs = bywash.ray.sweep(values, requests=2000, rate=750)
    points = list(itertools.product(*values.values()))
    assert len(runs) == 12
    for run, (policy, slots, seed) in zip(runs, points, strict=True):
        assert run == bywash.simulate(policy, slots=slots, seed=seed, requests=2000, rate=750)
    with pytest.raises(bywash.BadArgument, match="no policy 'best'"):
        bywash.ray.sweep({"policy": ["tuned", "best"]}, requests=100)
    with pytest.raises(bywash.BadArgument, match="swept, and given once"):
        bywash.ray.sweep({"seed": [1]}, seed=2)
