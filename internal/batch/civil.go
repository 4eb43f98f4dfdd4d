package batch

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
)

const secondsPerDay = 86400

// civilFromDays converts days since 1970-01-01 to a date of the proleptic Gregorian calendar,
// and daysFromCivil is its inverse. Both cover the whole range of date32 and of timestamps.
// Internally, years begin in March, so that the leap day is the last day, and are grouped in
// eras of 400 years (Hinnant, "chrono-compatible low-level date algorithms").
func civilFromDays(days int64) (year int64, month, day int) {
	era, ofEra := floorDiv(days+719468, 146097)
	y := (ofEra - ofEra/1460 + ofEra/36524 - ofEra/146096) / 365
	ofYear := ofEra - (365*y + y/4 - y/100)
	m := (5*ofYear + 2) / 153
	day = int(ofYear-(153*m+2)/5) + 1
	month = int(m) + 3
	year = y + era*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

func daysFromCivil(year int64, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	era, y := floorDiv(year, 400)
	ofYear := int64(153*(month-3)+2)/5 + int64(day) - 1
	return era*146097 + y*365 + y/4 - y/100 + ofYear - 719468
}

// appendDate appends a date as YYYY-MM-DD. Years of more than four digits have a sign, as in
// ISO 8601.
func appendDate(dst []byte, days int64) []byte {
	year, month, day := civilFromDays(days)
	abs := year
	switch {
	case year < 0:
		dst, abs = append(dst, '-'), -year
	case year > 9999:
		dst = append(dst, '+')
	}
	for p := int64(1000); p > abs && p > 1; p /= 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, abs, 10)
	dst = append2(append(dst, '-'), month)
	return append2(append(dst, '-'), day)
}

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// appendTimestamp appends the timestamp t in the format of RFC 3339, in UTC, with as many
// decimals as needed. If typ has no zone, the zone of t is unknown, and the text has no Z.
func appendTimestamp(dst []byte, t int64, typ *arrow.TimestampType) []byte {
	perSecond := unitsPerSecond(typ.Unit)
	secs, frac := floorDiv(t, perSecond)
	days, ofDay := floorDiv(secs, secondsPerDay)
	dst = append2(append(appendDate(dst, days), 'T'), int(ofDay/3600))
	dst = append2(append(dst, ':'), int(ofDay/60%60))
	dst = append2(append(dst, ':'), int(ofDay%60))
	if frac > 0 {
		dst = append(dst, '.')
		for p := perSecond / 10; frac > 0; p /= 10 {
			dst = append(dst, byte('0'+frac/p))
			frac %= p
		}
	}
	if typ.TimeZone == "" {
		return dst
	}
	return append(dst, 'Z')
}

// parseDate reads YYYY-MM-DD, where a year of more than four digits has a sign. It returns the
// rest of text.
func parseDate(text []byte) (days int64, rest []byte, err error) {
	sign, digits := int64(1), text
	signed := len(text) > 0 && (text[0] == '-' || text[0] == '+')
	if signed {
		if text[0] == '-' {
			sign = -1
		}
		digits = text[1:]
	}
	n := 0
	var year int64
	for n < len(digits) && n < 12 && isDigit(digits[n]) {
		year = year*10 + int64(digits[n]-'0')
		n++
	}
	if n < 4 || (n > 4 && !signed) || len(digits) < n+6 || digits[n] != '-' || digits[n+3] != '-' {
		return 0, nil, errNotDate
	}
	month, ok1 := twoDigits(digits[n+1:])
	day, ok2 := twoDigits(digits[n+4:])
	if !ok1 || !ok2 {
		return 0, nil, errNotDate
	}
	year *= sign
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, nil, errNoSuchDay
	}
	return daysFromCivil(year, month, day), digits[n+6:], nil
}

func daysIn(year int64, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func twoDigits(s []byte) (int, bool) {
	if len(s) < 2 || !isDigit(s[0]) || !isDigit(s[1]) {
		return 0, false
	}
	return int(s[0]-'0')*10 + int(s[1]-'0'), true
}

// parseTimestamp reads a date, optionally followed by 'T' or a space and a time. The time has
// hours and minutes, and optionally seconds, decimals and a zone (Z or ±hh:mm). If the type has
// a zone, a time without a zone is UTC. If the type has no zone, times are local, and a zone in
// the text is an error, because it would be lost.
func parseTimestamp(text []byte, typ *arrow.TimestampType) (int64, error) {
	days, rest, err := parseDate(text)
	if err != nil {
		return 0, err
	}
	var secs, frac int64
	perSecond := unitsPerSecond(typ.Unit)
	if len(rest) > 0 {
		if rest[0] != 'T' && rest[0] != ' ' && rest[0] != 't' {
			return 0, errNotTime
		}
		var zoned bool
		if secs, frac, zoned, err = parseClock(rest[1:], perSecond); err != nil {
			return 0, err
		}
		if zoned && typ.TimeZone == "" {
			return 0, fmt.Errorf("it has a time zone, and the type has none: that of such times is timestamp[%s, UTC]", typ.Unit)
		}
	}
	// Products wrap around if the time does not fit; the division detects that.
	carry, ofDay := floorDiv(secs, secondsPerDay)
	days += carry
	total := days*secondsPerDay + ofDay
	if q, r := floorDiv(total, secondsPerDay); q != days || r != ofDay {
		return 0, errRange
	}
	count := total*perSecond + frac
	if q, r := floorDiv(count, perSecond); q != total || r != frac {
		return 0, errRange
	}
	return count, nil
}

var (
	errNotDate   = errors.New("it is not a date of the form 2006-01-02")
	errNoSuchDay = errors.New("there is no such day")
	errNotTime   = errors.New("it is not a time of the form 2006-01-02T15:04:05Z")
	errDecimals  = errors.New("it has more decimals of a second than the column's unit can hold")
)

// parseClock reads hh:mm[:ss[.decimals]][zone]. It returns the seconds since midnight UTC,
// which a zone may make negative or more than a day, and the fraction of a second in units of
// 1/perSecond. zoned reports whether s has a zone.
func parseClock(s []byte, perSecond int64) (secs, frac int64, zoned bool, err error) {
	h, ok1 := twoDigits(s)
	if !ok1 || len(s) < 5 || s[2] != ':' {
		return 0, 0, false, errNotTime
	}
	m, ok2 := twoDigits(s[3:])
	if !ok2 || h > 23 || m > 59 {
		return 0, 0, false, errNotTime
	}
	secs, s = int64(h)*3600+int64(m)*60, s[5:]
	if len(s) > 0 && s[0] == ':' {
		sec, ok := twoDigits(s[1:])
		if !ok || sec > 59 {
			return 0, 0, false, errNotTime
		}
		secs, s = secs+int64(sec), s[3:]
		if len(s) > 0 && s[0] == '.' {
			if frac, s, err = parseDecimals(s[1:], perSecond); err != nil {
				return 0, 0, false, err
			}
		}
	}
	shift, err := parseZone(s)
	return secs - shift, frac, len(s) > 0, err
}

// parseDecimals reads decimals of a second and returns them in units of 1/perSecond. More
// decimals than the unit can hold are an error, because they would be lost.
func parseDecimals(s []byte, perSecond int64) (frac int64, rest []byte, err error) {
	n := 0
	for p := perSecond; n < len(s) && isDigit(s[n]); n++ {
		p /= 10
		if p == 0 && s[n] != '0' {
			return 0, nil, errDecimals
		}
		frac += int64(s[n]-'0') * p
	}
	if n == 0 {
		return 0, nil, errNotTime
	}
	return frac, s[n:], nil
}

func parseZone(s []byte) (shift int64, err error) {
	if len(s) == 0 || (len(s) == 1 && (s[0] == 'Z' || s[0] == 'z')) {
		return 0, nil
	}
	if len(s) != 6 || (s[0] != '+' && s[0] != '-') || s[3] != ':' {
		return 0, errNotTime
	}
	h, ok1 := twoDigits(s[1:])
	m, ok2 := twoDigits(s[4:])
	if !ok1 || !ok2 || h > 23 || m > 59 {
		return 0, errNotTime
	}
	shift = int64(h)*3600 + int64(m)*60
	if s[0] == '-' {
		shift = -shift
	}
	return shift, nil
}
