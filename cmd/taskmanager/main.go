// Command taskmanager runs superstep taskmanager.
package main

func main() {}
