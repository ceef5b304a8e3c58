import { useGallery } from '../gallery-context.ts'
import { hasName } from '../service/urls.ts'
import { strings } from '../strings.ts'

/** Chooses whether links that are shown and copied have the names of files. Until a person chooses it, the service decides. */
export function NamesChoice() {
  const { preferences, timeline } = useGallery()
  const { names } = preferences
  const isChosen =
    names.value === 'service' ? timeline.loaded.value?.items.some(hasName) === true : names.value === 'on'
  return (
    <label class="names-choice">
      <input
        type="checkbox"
        checked={isChosen}
        onChange={({ currentTarget }) => {
          names.value = currentTarget.checked ? 'on' : 'off'
        }}
      />
      {strings.link.names}
    </label>
  )
}
