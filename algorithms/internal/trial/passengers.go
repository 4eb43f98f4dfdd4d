package trial

// Passenger is a row for training, with columns of several types. Age and Sex may be null.
type Passenger struct {
	Age    *float64 `column:"age"`
	Fare   float64  `column:"fare"`
	Sex    *string  `column:"sex"`
	Deck   int64    `column:"deck"`
	Alone  bool     `column:"alone"`
	Lived  bool     `column:"lived"`
	Class  string   `column:"class"`
	Rank   int64    `column:"rank"`
	Price  float64  `column:"price"`
	Degree float64  `column:"degree"`
}

// Passengers returns n rows with missing values. The rows are pseudorandom, and the same in
// every call.
func Passengers(n int) []Passenger {
	state := uint64(7)
	draw := func() float64 {
		state = state*6364136223846793005 + 1442695040888963407
		return float64(float64(state>>11) / (1 << 53))
	}
	sexes, classes := []string{"male", "female", "unsaid"}, []string{"first", "second", "third"}
	rows := make([]Passenger, n)
	for i := range rows {
		r := &rows[i]
		age, sex := 1+float64(70*draw()), int(2.3*draw())
		r.Fare, r.Deck, r.Alone = 5+float64(200*draw()*draw()), int64(4*draw()), draw() < 0.4
		if draw() < 0.8 {
			r.Age = &age
		}
		if draw() < 0.9 {
			r.Sex = &sexes[sex]
		}
		chance := 0.5 + float64(0.3*float64(sex)) - age/200
		if r.Alone {
			chance -= 0.2
		}
		r.Lived = draw() < chance
		kind := min(2, int(3*draw()*(1-r.Fare/400)))
		r.Class, r.Rank, r.Degree = classes[kind], int64(kind*2-1), float64(kind)/2
		r.Price = float64(3*r.Fare) - float64(age/2) + float64(10*float64(sex)) + draw()
	}
	return rows
}

// Cells returns the values of a passenger by column name.
func (p Passenger) Cells() map[string]any {
	row := map[string]any{"age": nil, "sex": nil, "fare": p.Fare, "deck": p.Deck, "alone": p.Alone,
		"lived": p.Lived, "class": p.Class, "rank": p.Rank, "price": p.Price, "degree": p.Degree}
	if p.Age != nil {
		row["age"] = *p.Age
	}
	if p.Sex != nil {
		row["sex"] = *p.Sex
	}
	return row
}
