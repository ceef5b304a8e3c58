import type { TaggedBucket } from '@mediabucket/client'
import { useState } from 'preact/hooks'
import { useService } from '../gallery-context.ts'
import { errorMessage, isPreconditionFailed } from '../service/connection.ts'
import { strings } from '../strings.ts'
import { PictureFields } from './picture-fields.tsx'
import { LimitFields, MoreFields } from './setting-fields.tsx'
import { changesOf, conflictsOf, fieldsOf, type SettingFields } from './settings.ts'
import { areSizesRight } from './sizes.ts'

interface SettingsFormProps {
  readonly loaded: TaggedBucket
  /** Receives the bucket as it is after a save, or after others have changed it. */
  readonly onChanged: (bucket: TaggedBucket) => void
}

/** The form for the settings of a bucket. If others have changed a setting since it was loaded, the form shows their value beside the edited one. */
export function SettingsForm({ loaded, onChanged }: SettingsFormProps) {
  const { buckets, connectionTo, notices } = useService()
  const [draft, setDraft] = useState<Partial<SettingFields>>({})
  const [others, setOthers] = useState<Partial<SettingFields>>({})
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const [showsMistakes, setShowsMistakes] = useState(false)
  const texts = strings.buckets
  const now = fieldsOf(loaded.bucket)
  const { name } = loaded.bucket
  const connection = connectionTo(name)

  async function showOthers(): Promise<void> {
    const latest = await connection.watch(() => buckets.get(name))
    const next = fieldsOf(latest.bucket)
    setOthers(Object.fromEntries(conflictsOf(now, next, draft).map((field) => [field, next[field]])))
    onChanged(latest)
    setError(texts.conflict)
  }

  async function save(): Promise<void> {
    if (busy) return
    const values = { ...now, ...draft }
    const changes = changesOf(now, values)
    const isRight = areSizesRight(values.variants)
    setShowsMistakes(!isRight)
    setError(isRight ? '' : texts.pictures.wrongSizes)
    if (!isRight) return
    if (Object.keys(changes).length === 0) return notices.show(texts.unchanged)
    const sent = new Map(Object.entries(draft))
    setBusy(true)
    try {
      onChanged(
        await connection.watch(() => buckets.set(name, changes, { ifMatch: loaded.etag ?? undefined })),
      )
      // Edits that were made during the request stay.
      setDraft((latest) =>
        Object.fromEntries(Object.entries(latest).filter(([field, value]) => sent.get(field) !== value)),
      )
      setOthers({})
      notices.show(texts.saved)
    } catch (reason) {
      if (isPreconditionFailed(reason)) await showOthers().catch((later) => setError(errorMessage(later)))
      else setError(errorMessage(reason))
    }
    setBusy(false)
  }

  const props = {
    values: { ...now, ...draft },
    others,
    showsMistakes,
    onChange: (change: Partial<SettingFields>) => setDraft((before) => ({ ...before, ...change })),
    onTake(...fields: readonly (keyof SettingFields)[]) {
      const without = (from: Partial<SettingFields>): Partial<SettingFields> =>
        Object.fromEntries(Object.entries(from).filter(([field]) => !fields.some((name) => name === field)))
      setDraft(without)
      setOthers(without)
    },
  }
  return (
    <section class="bucket-card" aria-labelledby="settings-title">
      <form
        class="token-form"
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        <h2 id="settings-title">{texts.settings}</h2>
        <LimitFields {...props} />
        <MoreFields {...props} />
        <PictureFields {...props} />
        <p class="message bad" role="alert">
          {error}
        </p>
        <div>
          <button type="submit" class="button primary" aria-disabled={busy}>
            {texts.save}
          </button>
        </div>
      </form>
    </section>
  )
}
