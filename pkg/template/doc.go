// Package template follows resource templates, the users' objects of any kind
// in the control plane, as far as they are asked for: of the kinds that some
// policy selects, some binding refers to, or some template depends on.
//
// A kind need not be served yet, and may go away and come back. Whatever cannot
// be found out is an error, and is never taken for "there is none": what is
// known stays known until a whole list says otherwise, and an object counts as
// not found only when it was looked for live.
package template
