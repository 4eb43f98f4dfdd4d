// Package program represents a collective operation as data: what each rank sends, receives,
// folds and copies, and in which order. A program does not specify the type or the number of
// elements, or how messages are transported.
//
// A [Program] is the part of one rank: lanes of instructions on chunks of its input, its output
// and scratch memory. Package algorithm generates programs, package check proves that the
// programs of all ranks together compute the collective as they claim, package execute runs a
// program over connections, and package simulate predicts its time on given networks. A program
// has a text form, which is used to review changes of an algorithm:
//
//	program allreduce direct p=2 rank=0 chunks=2 canonical order
//	in [0:2] out [0:2] scratch0[0]
//	lane 0 local
//	  0 reduce out[0] = (in[0] scratch0[0]) after 1.1
//	lane 1 send=1 recv=1 channel=0
//	  0 send in[1]
//	  1 recv scratch0[0]
//	  2 send out[0] after 0.0
//	  3 recv out[1] after 1.0
//
// The design follows MSCCL (Cowan et al., "MSCCLang: Microsoft Collective Communication
// Language", ASPLOS 2023), with additions by which a checker can also prove the order of
// floating-point operations: left and right operands are distinguished, reductions have
// expression trees, and inputs may be forests over a tree of shards.
package program
