import { useEffect, useState } from 'preact/hooks'
import { usePage } from './gallery-context.ts'
import { loadTexts, type PartName } from './strings.ts'

/**
 * Code that few people need, loaded with the component that uses it, and its texts. `load` calls `import()`. It fails in a page that was opened before an
 * upgrade, because the names of the files have changed; only a reload helps.
 */
export function useCode<Code extends object>(
  load: () => Promise<Code>,
  ...texts: readonly PartName[]
): Code | 'loading' | 'failed' {
  const { connection } = usePage()
  const [code, setCode] = useState<Code | 'loading' | 'failed'>('loading')
  useEffect(() => {
    void connection
      .untilReached()
      .then(() => Promise.all([load(), loadTexts(...texts)]))
      .then(
        ([loaded]) => setCode(() => loaded),
        () => setCode('failed'),
      )
  }, [connection])
  return code
}
