// Package trial has the helpers that tests of algorithms share. Tables are generated or read
// from testdata. Run and similar functions run jobs and check them for memory leaks. Other
// functions assert what every estimator must satisfy. A job gives the same bits at any
// parallelism, any number of workers and any batch size. A model equals the model that is read
// from its file, and a damaged file is refused. The operator, the methods and the bound step of
// a model give the same predictions, also concurrently. A superstep of training allocates
// little memory.
package trial
