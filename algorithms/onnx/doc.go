// Package onnx writes models as ONNX-ML, and reads what it wrote.
package onnx
