/** The object with some methods replaced. The others are still called on the object itself, which may be of a class. */
export const withMethods = <Parts extends object>(object: Parts, replaced: Partial<Parts>): Parts =>
  new Proxy(object, {
    get(target, name) {
      const value: unknown = Reflect.get(name in replaced ? replaced : target, name)
      return typeof value === 'function' ? value.bind(name in replaced ? replaced : target) : value
    },
  })
