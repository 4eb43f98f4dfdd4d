package rows

import (
	"encoding/binary"
	"errors"
	"math"
)

// shardStatsCodec encodes statistics as numbers of eight bytes, little-endian. After these come
// the weight, the key and the text of each class; key and text are each preceded by their
// length. The codec avoids reflection, because statistics are encoded for every shard.
type shardStatsCodec struct{}

var errShardStats = errors.New("rows: these bytes are not the statistics of a shard")

// numbers returns the float64 fields of statistics, without the classes.
func (l *shardStats) numbers() []*float64 {
	return []*float64{
		&l.Weight, &l.Label.Weight, &l.Label.Mean, &l.Label.Squares, &l.Offset.Weight, &l.Offset.Mean, &l.Offset.Squares, &l.Min, &l.Max,
	}
}

// Append implements shared.Codec.
func (shardStatsCodec) Append(dst []byte, l shardStats) ([]byte, error) {
	put := func(v uint64) { dst = binary.LittleEndian.AppendUint64(dst, v) }
	put(uint64(l.Rows))
	put(uint64(l.Weighing))
	put(uint64(l.Dim))
	for _, v := range l.numbers() {
		put(math.Float64bits(*v))
	}
	for i, w := range l.Classes.Weight {
		put(math.Float64bits(w))
		for _, s := range []string{l.Classes.Keys[i], l.Classes.Texts[i]} {
			put(uint64(len(s)))
			dst = append(dst, s...)
		}
	}
	return dst, nil
}

// Decode implements shared.Codec.
func (shardStatsCodec) Decode(src []byte) (l shardStats, err error) {
	take := func() (v uint64) {
		if len(src) < 8 {
			src, err = nil, errShardStats
			return 0
		}
		v, src = binary.LittleEndian.Uint64(src), src[8:]
		return v
	}
	text := func() (s string) {
		n := take()
		if n > uint64(len(src)) {
			src, err = nil, errShardStats
			return ""
		}
		s, src = string(src[:n]), src[n:]
		return s
	}
	l.Rows, l.Weighing, l.Dim = int64(take()), int64(take()), int(take())
	for _, v := range l.numbers() {
		*v = math.Float64frombits(take())
	}
	for len(src) > 0 {
		l.Classes.Weight = append(l.Classes.Weight, math.Float64frombits(take()))
		l.Classes.Keys, l.Classes.Texts = append(l.Classes.Keys, text()), append(l.Classes.Texts, text())
	}
	if err != nil {
		return shardStats{}, err
	}
	return l, nil
}
