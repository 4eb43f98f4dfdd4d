// Package trial has the helpers that tests of algorithms share. Tables are generated or read
// from testdata. Run and similar functions run jobs and check them for memory leaks. Assertions
// hold for every estimator: a job gives the same bits at any parallelism, any number of workers
// and any batch size; a model equals the model read from its file, and a damaged file is
// refused; the operator, the methods and the bound step of a model predict the same, also
// concurrently; a superstep of training allocates little.
package trial
