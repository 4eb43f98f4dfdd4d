// Package execute runs collective programs over the connections of a mesh.
package execute
