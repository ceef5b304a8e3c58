import { useState } from 'react'

/** A value that is created again when the client or the key changes. React may forget what `useMemo` holds, and uploads must not be lost. */
export function useHeld<T>(client: object, key: string, create: () => T): T {
  const [held, setHeld] = useState(() => ({ client, key, value: create() }))
  if (held.client === client && held.key === key) return held.value
  const next = { client, key, value: create() }
  setHeld(next)
  return next.value
}
