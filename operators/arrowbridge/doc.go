// Package arrowbridge converts rows to and from Apache Arrow. It is the only public package
// whose API has Arrow types, those of github.com/apache/arrow/go/v15. Programs that use another
// version of Arrow, or none, do not need it.
//
// Between versions of Arrow, rows are exchanged as an Arrow stream, which all versions read and
// write: [WriteStream] and [ReadStream]. For files there are operators.ReadArrow and
// operators.WriteArrow.
//
// Nothing is copied, and ownership does not change: the record of a batch is the batch itself,
// and is retained and released like it.
package arrowbridge
