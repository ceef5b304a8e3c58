import { useEffect, useState } from 'preact/hooks'
import { useGallery } from './gallery.ts'

/** Code that few people need, loaded with the component that uses it; null until it is loaded. `load` calls `import()`. */
export function useCode<Code extends object>(load: () => Promise<Code>): Code | null {
  const { connection } = useGallery()
  const [code, setCode] = useState<Code | null>(null)
  useEffect(() => {
    void connection
      .untilReached()
      .then(load)
      .then((loaded) => setCode(() => loaded))
  }, [connection])
  return code
}
