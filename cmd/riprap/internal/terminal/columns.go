package terminal

import "unicode"

// Columns is how many columns s takes: two for each wide character, none for an accent that is set upon the one before it.
// Colors take none.
func Columns(s string) (n int) {
	for _, c := range plain(s) {
		switch {
		case c < 0x300: // nearly all
			n++
		case unicode.In(c, unicode.Mn, unicode.Me):
		case unicode.Is(wide, c):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide are the characters that take two columns: those of East Asia (Unicode Standard Annex #11), and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0x4dbf, 1}, {0x4e00, 0xa4cf, 1}, {0xa960, 0xa97c, 1},
		{0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff01, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{{0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f900, 0x1f9ff, 1}, {0x20000, 0x3fffd, 1}},
}
