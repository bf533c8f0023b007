package riprap

// unreachable is empty: Plan 9 names errors by texts, which are not for programs to match.
var unreachable = [...]error{}
