import java.util.ArrayList;
import java.util.List;

import com.alibaba.alink.operator.batch.BatchOperator;
import com.alibaba.alink.operator.batch.classification.GbdtPredictBatchOp;
import com.alibaba.alink.operator.batch.classification.GbdtTrainBatchOp;
import com.alibaba.alink.operator.batch.classification.LogisticRegressionPredictBatchOp;
import com.alibaba.alink.operator.batch.classification.LogisticRegressionTrainBatchOp;
import com.alibaba.alink.operator.batch.clustering.KMeansPredictBatchOp;
import com.alibaba.alink.operator.batch.clustering.KMeansTrainBatchOp;
import com.alibaba.alink.operator.batch.dataproc.vector.VectorAssemblerBatchOp;
import com.alibaba.alink.operator.batch.sink.AkSinkBatchOp;
import com.alibaba.alink.operator.batch.sink.CsvSinkBatchOp;
import com.alibaba.alink.operator.batch.source.AkSourceBatchOp;
import com.alibaba.alink.operator.batch.source.CsvSourceBatchOp;
import com.alibaba.alink.params.classification.GbdtTrainParams.CriteriaType;
import com.alibaba.alink.params.shared.linear.LinearTrainParams.OptimMethod;

/**
 * Trains with Alink on a CSV file and saves the model, or writes the predictions of a saved model
 * for such a file.
 *
 * Arguments: train, problem, CSV file, features, model, threads, iterations; or predict, problem,
 * CSV file, features, model, threads, output.
 */
public final class AlinkTraining {
	public static void main(String[] args) throws Exception {
		String problem = args[1], model = args[4];
		int features = Integer.parseInt(args[3]);
		BatchOperator.setParallelism(Integer.parseInt(args[5]));
		BatchOperator<?> rows = read(args[2], problem, features);
		if (args[0].equals("train")) {
			train(problem, names(features), Integer.parseInt(args[6])).linkFrom(rows)
				.link(new AkSinkBatchOp().setFilePath(model).setOverwriteSink(true));
		} else {
			predict(problem).linkFrom(new AkSourceBatchOp().setFilePath(model), rows)
				.select(problem.equals("kmeans") ? "distance" : "label, detail")
				.link(new CsvSinkBatchOp().setFilePath(args[6]).setNumFiles(1).setOverwriteSink(true));
		}
		BatchOperator.execute();
	}

	static String[] names(int features) {
		String[] names = new String[features];
		for (int j = 0; j < features; j++) {
			names[j] = "x" + j;
		}
		return names;
	}

	/** Reads the rows. For k-means, it combines the features of each row into a vector. */
	static BatchOperator<?> read(String csv, String problem, int features) {
		boolean clusters = problem.equals("kmeans");
		List<String> columns = new ArrayList<>();
		for (String name : names(features)) {
			columns.add(name + " double");
		}
		if (!clusters) {
			columns.add("label int");
		}
		BatchOperator<?> rows = new CsvSourceBatchOp().setFilePath(csv).setSchemaStr(String.join(", ", columns)).setIgnoreFirstLine(true);
		if (!clusters) {
			return rows;
		}
		return rows.link(new VectorAssemblerBatchOp().setSelectedCols(names(features)).setOutputCol("vector").setReservedCols(new String[0]));
	}

	static BatchOperator<?> train(String problem, String[] features, int iterations) {
		switch (problem) {
			case "kmeans":
				return new KMeansTrainBatchOp().setVectorCol("vector").setK(10).setInitMode("RANDOM")
					.setMaxIter(iterations).setEpsilon(0.0);
			case "logistic":
				return new LogisticRegressionTrainBatchOp().setFeatureCols(features).setLabelCol("label")
					.setOptimMethod(OptimMethod.LBFGS).setMaxIter(iterations).setEpsilon(0.0);
			case "gbdt":
				// Alink's depth counts the levels of nodes: a tree of depth 6 has 7 levels.
				return new GbdtTrainBatchOp().setFeatureCols(features).setLabelCol("label")
					.setNumTrees(iterations).setMaxDepth(7).setLearningRate(0.1).setMaxBins(128)
					.setCriteria(CriteriaType.XGBOOST).setLambda(0.0).setGamma(0.0)
					.setMinSamplesPerLeaf(100).setMinSumHessianPerLeaf(0.0);
		}
		throw new IllegalArgumentException("no problem " + problem);
	}

	static BatchOperator<?> predict(String problem) {
		switch (problem) {
			case "kmeans":
				return new KMeansPredictBatchOp().setPredictionCol("cluster").setPredictionDistanceCol("distance");
			case "logistic":
				return new LogisticRegressionPredictBatchOp().setPredictionCol("prediction").setPredictionDetailCol("detail");
			case "gbdt":
				return new GbdtPredictBatchOp().setPredictionCol("prediction").setPredictionDetailCol("detail");
		}
		throw new IllegalArgumentException("no problem " + problem);
	}
}
