package kwok

import "k8s.io/apimachinery/pkg/api/resource"

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}
