package explore

// Rules are the rules in which memory models differ, as far as a search along program order has them. The search itself
// knows no model. The zero value is scoped RC11.
type Rules struct {
	// EarlierReads says that a strong read and a later acquire of its location form an acquire pattern.
	EarlierReads bool
	// PlainReductions says that the read of a reduction and a later fence do not form an acquire pattern.
	PlainReductions bool
	// VolatileIsAtomic says that a volatile access races with no atomic access whose scope includes its thread.
	VolatileIsAtomic bool
	// Observation says that a write happens before an access if a read that observed the write happens before the access.
	Observation bool
	// Partial says that the model allows executions that the search does not reach. The search then stops, with
	// Result.Beyond, at a data race, unless Options.Found says that the race is enough, and at two sc fences whose scopes
	// do not include each other.
	Partial bool
}
