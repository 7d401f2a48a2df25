package change

const TypeSuffix = "@odata.type"
