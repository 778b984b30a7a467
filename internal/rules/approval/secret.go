package approval

// LooksSecret reports whether a text has the shape of a credential (TGC-03).
func LooksSecret(text string) bool { return credentialShape.MatchString(text) }
