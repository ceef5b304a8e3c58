import type { LabelKey } from '@mediabucket/client'
import { maxSelectedLabels } from '@mediabucket/client/rules'
import { useEffect, useState } from 'preact/hooks'
import { Choice } from '../components/controls.tsx'
import { useGallery } from '../gallery-context.ts'
import { splitLabel } from '../router.ts'
import { errorMessage } from '../service/connection.ts'
import { formatCount } from '../strings/locale.ts'
import { strings } from '../strings.ts'

/** Values of each key that can be chosen: the most frequent ones. */
const shownValues = 50

/** A choice for each key of the labels of the bucket. */
export function LabelMenu() {
  const { client, router, shownList, labelChanges } = useGallery()
  const { labels } = router.list.value
  const [keys, setKeys] = useState<readonly LabelKey[] | null>(null)
  const [error, setError] = useState('')
  const changes = labelChanges.value
  useEffect(() => {
    let unmounted = false
    client.labels({ limit: shownValues }).then(
      (found) => {
        if (unmounted) return
        setKeys(found)
        setError('')
      },
      (reason: unknown) => !unmounted && setError(errorMessage(reason)),
    )
    return () => {
      unmounted = true
    }
  }, [changes])
  const chosen = new Map(labels.map(splitLabel))
  const offered = new Map(keys?.map(({ key, values }) => [key, values]))
  // A chosen label may have been removed from all files.
  const shown = [...new Set([...offered.keys(), ...chosen.keys()])].filter(
    (key) => chosen.has(key) || chosen.size < maxSelectedLabels,
  )
  const choose = (key: string, value: string | null) => {
    const others = labels.filter((label) => splitLabel(label)[0] !== key)
    shownList.choose({ labels: value === null ? others : [...others, `${key}=${value}`] })
  }
  if (error !== '') return <p role="alert">{error}</p>
  if (keys === null) return <p role="status">{strings.viewer.loading}</p>
  if (shown.length === 0) return <p role="status">{strings.filter.noLabels}</p>
  return shown.map((key) => {
    const value = chosen.get(key)
    const values = offered.get(key) ?? []
    const isOffered = value === undefined || values.some((known) => known.value === value)
    // The names of properties begin with `=`, because those that look like integers would come first.
    const options = Object.fromEntries([
      ['', strings.filter.anyValue],
      ...(isOffered ? [] : [[`=${value}`, value]]),
      ...values.map((known) => [`=${known.value}`, `${known.value || '–'} (${formatCount(known.items)})`]),
    ])
    return (
      <Choice
        key={key}
        label={key}
        options={options}
        value={value === undefined ? '' : `=${value}`}
        onChoose={(option) => choose(key, option === '' ? null : option.slice(1))}
      />
    )
  })
}
