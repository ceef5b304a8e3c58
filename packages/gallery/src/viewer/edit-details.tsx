import type { Media, TaggedMedia } from '@mediabucket/client'
import { useEffect, useState } from 'preact/hooks'
import { useGallery } from '../gallery.ts'
import { errorMessage } from '../service/errors.ts'
import { strings } from '../strings.ts'

/** A form that changes the texts of an item. An edit by others in the meantime is not overwritten. */
export function EditDetails({ media, onDone }: { media: Media; onDone: () => void }) {
  const { edits, mediaCache, notices } = useGallery()
  const [before, setBefore] = useState<TaggedMedia | null>(null)
  const [busy, setBusy] = useState(false)

  useEffect(() => {
    let unmounted = false
    edits
      .load(media.id)
      .then((tagged) => {
        if (!unmounted) setBefore(tagged)
      })
      .catch((error: unknown) => {
        notices.show(errorMessage(error), { tone: 'bad' })
        onDone()
      })
    return () => {
      unmounted = true
    }
  }, [media.id])

  async function save(loaded: TaggedMedia, form: HTMLFormElement): Promise<void> {
    const fields = new FormData(form)
    const textOf = (name: string) => `${fields.get(name) ?? ''}`.trim() || null
    setBusy(true)
    try {
      const changes = {
        filename: textOf('filename'),
        alt_text: textOf('alt_text'),
        caption: textOf('caption'),
      }
      // An edit changes no URL, and its response has no signed ones.
      const { url, variants } = media
      mediaCache.putEdited({ ...(await edits.save(loaded, changes)), url, variants })
      notices.show(strings.details.saved)
      onDone()
    } catch (error) {
      notices.show(strings.details.notSaved(errorMessage(error)), { tone: 'bad' })
      setBusy(false)
    }
  }

  if (before === null) return <p role="status">{strings.viewer.loading}</p>
  const { filename, alt_text, caption } = before.media
  return (
    <form
      class="edit-details"
      onSubmit={(event) => {
        event.preventDefault()
        void save(before, event.currentTarget)
      }}
    >
      <label>
        {strings.details.name}
        <input type="text" name="filename" autocomplete="off" defaultValue={filename ?? ''} />
      </label>
      <label>
        {strings.details.altText}
        <textarea
          name="alt_text"
          rows={2}
          maxLength={1000}
          aria-describedby="alt-text-hint"
          defaultValue={alt_text ?? ''}
        />
      </label>
      <p id="alt-text-hint" class="small muted">
        {strings.details.altTextHint}
      </p>
      <label>
        {strings.details.caption}
        <textarea name="caption" rows={3} maxLength={5000} defaultValue={caption ?? ''} />
      </label>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onDone}>
          {strings.cancel}
        </button>
        <button type="submit" class="button primary" disabled={busy}>
          {strings.details.save}
        </button>
      </div>
    </form>
  )
}
