"""Runs the graphs that the tests write through onnxruntime, and compares the results.

    mkdir -p /tmp/runs
    RUNS=/tmp/runs go test ./algorithms/interchange/onnx -run "TestExport|TestTrees" -rewrite
    python algorithms/interchange/onnx/testdata/check.py /tmp/runs

It needs numpy, onnx and onnxruntime. The tests themselves do not: they run the graphs by an
evaluator of their own, whose results these are held to. linear-rewritten.onnx is linear.onnx
as onnx.load_from_string(...).SerializeToString() writes it.
"""
import base64, glob, json, os, sys
import numpy as np, onnx, onnxruntime

worst = {}
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.json"))):
    run = json.load(open(path))
    data = base64.b64decode(run["file"])
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    session = onnxruntime.InferenceSession(data)
    real = np.float32 if run["single"] else np.float64
    feed = {}
    for column in run["inputs"]:
        values = [row[column["column"]] for row in run["rows"]]
        if column["type"] == "utf8":
            feed[column["column"]] = np.array([["" if v is None else v] for v in values], dtype=object)
        else:
            feed[column["column"]] = np.array([np.ravel(np.nan if v is None else np.array(v, dtype=float)) for v in values], dtype=real)
    names = [o.name for o in session.get_outputs()]
    trees = os.path.basename(path).startswith("trees-")  # whose sums are of float32 in either kind
    error = 0.0
    for name, got in zip(names, session.run(names, feed)):
        want = run["outputs"][name]
        got = got.ravel()
        if got.dtype == object:
            assert list(got) == want, (path, name)
            continue
        want = np.array([np.nan if v is None else v for v in want], dtype=float)
        got = got.astype(float)
        assert (np.isnan(got) == np.isnan(want)).all(), (path, name, got, want)
        ok = ~np.isnan(want)
        if ok.any():
            error = max(error, float(np.max(np.abs(got - want)[ok] / (1 + np.abs(want[ok])))))
    kind = "float32" if run["single"] else "trees" if trees else "float64"
    worst[kind] = max(worst.get(kind, 0), error)
    print(f"{os.path.basename(path):32} outputs {','.join(names):28} error {error:.1e}")
    assert error < (2e-4 if run["single"] else 1e-6 if trees else 1e-12), path
print("largest relative errors:", worst, "with onnxruntime", onnxruntime.__version__)
