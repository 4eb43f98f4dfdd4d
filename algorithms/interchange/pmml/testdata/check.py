"""Runs the documents that the tests write through PMML4S, and compares the results.

    mkdir -p /tmp/runs
    RUNS=/tmp/runs go test ./algorithms/interchange/pmml -run TestExport$
    python algorithms/interchange/pmml/testdata/check.py /tmp/runs

It needs pypmml and Java. The tests themselves do not: they run the documents by an
evaluator of their own, whose results these are held to.
"""
import glob, json, os, sys
from pypmml import Model

worst = 0.0
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.pmml"))):
    model = Model.load(path)
    error, count = 0.0, 0
    for row in json.load(open(path.replace(".pmml", ".json"))):
        got = model.predict(row["in"])
        for name, want in row["out"].items():
            value = got[name]
            if isinstance(want, str):
                assert str(value).lower() == want, (path, row, name, value)
            elif want is None:
                assert value is None or value != value, (path, row, name, value)
            else:
                error = max(error, abs(float(value) - want) / (1 + abs(want)))
            count += 1
    print(f"{os.path.basename(path):24} values {count:4} error {error:.1e}")
    assert error < 1e-12, path
    worst = max(worst, error)
print("largest relative error:", worst)
