// Package arrowbridge takes and gives rows as Apache Arrow has them. It is the one public package
// that names types of Arrow, those of github.com/apache/arrow/go/v15: programs that use another
// version of Arrow, or none, use the rest without it.
//
// Between versions rows go as an Arrow stream, which all of them read and write: [WriteStream]
// and [ReadStream]. For files there are operators.ReadArrow and operators.WriteArrow.
//
// Nothing is copied, and ownership stays as it was: a record made of a batch is the batch, and
// is retained and released as it is.
package arrowbridge
