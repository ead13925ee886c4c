// Package binding holds bindings and Works as nouns that several stages and
// controllers share: what all producers of a Work do alike is here, once.
package binding
