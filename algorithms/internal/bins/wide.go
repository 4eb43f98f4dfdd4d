package bins

// The bins of a feature of many categories do not fit in a byte. Such a feature has its own
// column with two bytes per row, for dense and sparse rows alike. In a histogram it has a slot
// for each bin.

// fillWide sets d.Wide, the columns of two bytes.
func (d *Data) fillWide(p *plan, parts []packed) {
	for _, i := range d.Layout.Wide {
		f := &d.Layout.Features[i]
		column := make([]uint16, d.Rows)
		if p.kind == sparseRows {
			absent := uint16(f.Bins)
			if p.options.AbsentIsZero {
				absent = uint16(f.Bin(0))
			}
			for row := range column {
				column[row] = absent
			}
		}
		of := f.binsOfCodes()
		for k := range parts {
			if p.kind == separate && p.text[f.Number] {
				of = f.binsOfNames(parts[k].dictionaries[p.textDictionary(f.Number)])
			}
			own := column[d.Shards[k].First:][:parts[k].n]
			parts[k].column(p.kind, f.Number, func(row int, x float32) {
				own[row] = uint16(f.Bins)
				if code := int32(x); x >= 0 && x < float32(len(of)) && float32(code) == x {
					own[row] = of[code]
				}
			})
		}
		d.Wide = append(d.Wide, column)
	}
}

// binsOfCodes returns the bin of each code from 0 up to the largest one with a bin.
func (f *Feature) binsOfCodes() []uint16 {
	if len(f.Codes) == 0 {
		return nil
	}
	of := make([]uint16, f.Codes[len(f.Codes)-1]+1)
	for code := range of {
		of[code] = uint16(f.Bins)
	}
	for bin, code := range f.Codes {
		of[code] = uint16(bin)
	}
	return of
}

// binsOfNames returns the bins of a shard's own categories, which are in its dictionary d.
func (f *Feature) binsOfNames(d dictionary) []uint16 {
	of := make([]uint16, len(d.Keys))
	for i, key := range d.Keys {
		of[i] = uint16(f.Bins)
		if bin := f.Category(key); bin >= 0 {
			of[i] = uint16(bin)
		}
	}
	return of
}
