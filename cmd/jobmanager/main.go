// Command jobmanager runs superstep jobmanager.
package main

func main() {}
