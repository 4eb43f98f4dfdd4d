// Package model is what all trained models have in common: what they can do, how they
// are written to files, and how the stages of a pipeline see them.
//
// # The file of a model
//
// A model is one JSON object, whatever its kind:
//
//	{
//	  "format": "superstep/model",
//	  "kind": "logistic",                    which algorithm's
//	  "version": 1,                          of this kind's payload
//	  "inputs": [                            what it reads of a row
//	    {"column": "features", "type": "vector[4]"}
//	  ],
//	  "summary": {…},                        of training: rows, iterations, loss, record
//	  "payload": {…},                        the model
//	  "checksum": "xxh3:16 hex digits"       of the object without spaces and checksum
//	}
//
// Numbers are the shortest decimals that read back to the same float64.
package model
