package bins

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared"
)

// known is the result of the queue that computes the facts.
type known struct {
	Facts  Facts
	Layout Layout
	Keys   [][]byte // Dictionary.Keys of the classes
}

// knownRow is the only row of the dataset that the queue outputs. It holds a knownFile.
type knownRow struct {
	Facts []byte `column:"facts"`
}

// knownFile is the encoding of known. The cuts of all features are in one byte slice, and so
// are the codes, since a job may have millions of them. HowMany and HowCodes have the numbers
// of cuts and of codes of each feature.
type knownFile struct {
	Known    known
	Cuts     []byte
	HowMany  []int32
	Codes    []byte
	HowCodes []int32
}

var knownCodec = shared.Msgpack[knownFile]()

// encode returns the row that holds k.
func (k known) encode() (knownRow, error) {
	file := knownFile{Known: k}
	features := append([]Feature(nil), k.Layout.Features...)
	for i := range features {
		f := &features[i]
		file.Cuts = append(file.Cuts, arrow.Float32Traits.CastToBytes(f.Cuts)...)
		file.Codes = append(file.Codes, arrow.Int32Traits.CastToBytes(f.Codes)...)
		file.HowMany = append(file.HowMany, int32(len(f.Cuts)))
		file.HowCodes = append(file.HowCodes, int32(len(f.Codes)))
		f.Cuts, f.Codes = nil, nil
	}
	file.Known.Layout.Features = features
	data, err := knownCodec.Append(nil, file)
	return knownRow{data}, err
}

// decodeKnown decodes the row that encode returned.
func decodeKnown(frame *comqueue.Frame) (*known, error) {
	if frame.Rows() != 1 {
		return nil, fmt.Errorf("there are %d rows of facts about the features, want one", frame.Rows())
	}
	file, err := knownCodec.Decode(arrowrows.Record(frame.Batch()).Column(0).(*array.Binary).Value(0))
	if err != nil {
		return nil, err
	}
	k := file.Known
	cuts, codes := arrow.Float32Traits.CastFromBytes(file.Cuts), arrow.Int32Traits.CastFromBytes(file.Codes)
	for i := range k.Layout.Features {
		f := &k.Layout.Features[i]
		n, c := file.HowMany[i], file.HowCodes[i]
		f.Cuts, f.Codes = cuts[:n:n], codes[:c:c]
		cuts, codes = cuts[n:], codes[c:]
		if n == 0 {
			f.Cuts = nil
		}
		if c == 0 {
			f.Codes = nil
		}
	}
	return &k, nil
}

// classes returns the classes as a dictionary.
func (k *known) classes() dictionary {
	d := dictionary{Texts: k.Facts.Classes}
	for _, key := range k.Keys {
		d.Keys = append(d.Keys, string(key))
	}
	return d
}
