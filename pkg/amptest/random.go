package amptest

import "fmt"

// random is a source of numbers that depend on nothing but its own value.
type random uint64

// with derives another source (the finalizer of splitmix64).
func (r random) with(key uint64) random {
	z := uint64(r) + (key+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return random(z ^ z>>31)
}

// unit is a number in [0, 1).
func (r random) unit() float64 { return float64(r>>11) / (1 << 53) }

// between is a whole number in [low, high].
func (r random) between(low, high int64) int64 {
	return low + int64(uint64(r)%uint64(high-low+1))
}

// uuid looks like a version 4 UUID.
func (r random) uuid() string {
	a, b := uint64(r.with(1)), uint64(r.with(2))
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}

// suffix looks like what Kubernetes appends to a pod's name.
func (r random) suffix(length int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	text := make([]byte, length)
	for i := range text {
		text[i] = alphabet[uint64(r.with(uint64(i)))%uint64(len(alphabet))]
	}
	return string(text)
}
