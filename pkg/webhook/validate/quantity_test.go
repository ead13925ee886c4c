package validate

import "testing"

func TestOutOfRange(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string // JSON
		want   []string
	}{
		"Ordinary": {reason: "These are quantities.", object: `{"spec":{"overall":{"a":"1","b":"1e3","c":"1E","d":"1Ei","e":1e-9,"f":"-1.5e+999","g":"1e0000001"}}}`},
		"Large":    {reason: "To compare it takes all memory.", object: `{"spec":{"overall":{"cpu":"1e2000000000"}}}`, want: []string{`spec.overall[cpu]: Invalid value: "1e2000000000": must be a quantity with an exponent of no more than three digits`}},
		"Small":    {reason: "To read it does.", object: `{"spec":{"overall":{"cpu": "1e-1000"}}}`, want: []string{`spec.overall[cpu]: Invalid value: "1e-1000"`}},
		"Number":   {reason: "A quantity may be a number.", object: `{"spec":{"overall":{"cpu":1e99999 }}}`, want: []string{`spec.overall[cpu]: Invalid value: "1e99999"`}},
		"Forms":    {reason: "There are many ways to write one.", object: `{"spec":{"overall":{"a":"+.5E+12345","b":"1.e-12345"}}}`, want: []string{`spec.overall[a]: `, `spec.overall[b]: `}},
		"InList":   {reason: "Wherever the field is.", object: `{"spec":{"shares":[{},{"hard":{"cpu":"1e10000"}}]}}`, want: []string{`spec.shares[1].hard[cpu]: `}},
		"OtherField": {
			reason: "What is no quantity may look like one.",
			object: `{"metadata":{"labels":{"commit":"1e12345"},"hard":"1e12345"},"spec":{"clusterName":"1e12345","list":["1e12345"],"overall":{"cpu":"1"}}}`,
		},
		"OtherText": {reason: "Text that is none is no quantity.", object: `{"spec":{"overall":{"a":"1e12345x","b":"x1e12345","c":"3f1e45678-0000"}}}`},
		"NoDigits":  {reason: "Of a quantity they may be missing.", object: `{"spec":{"overall":{"a":"E12345","b":"-e12345"}}}`, want: []string{`spec.overall[a]: `, `spec.overall[b]: `}},
		"NoJSON":    {reason: "Whoever reads it says so.", object: `{"overall":{"cpu":"1e12345"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			compare(t, c.reason, OutOfRange([]byte(c.object), "overall", "hard"), c.want)
			if errs := OutOfRange([]byte(c.object)); errs != nil {
				t.Errorf("got %v: a kind without quantities has none out of range", errs)
			}
		})
	}
}
