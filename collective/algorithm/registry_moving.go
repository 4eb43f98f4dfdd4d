package algorithm

func broadcasts() []*Algorithm { return []*Algorithm{} }

func reduces() []*Algorithm { return []*Algorithm{} }

func gathers() []*Algorithm { return []*Algorithm{} }

func allGathers() []*Algorithm { return []*Algorithm{} }

func scatters() []*Algorithm { return []*Algorithm{} }

func allToAlls() []*Algorithm { return []*Algorithm{} }

func barriers() []*Algorithm { return []*Algorithm{} }

func scans() []*Algorithm { return []*Algorithm{} }

func exscans() []*Algorithm { return []*Algorithm{} }
