import { useEffect, useRef } from 'preact/hooks'
import { Choice } from '../components/choice.tsx'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'
import { isFiltered, kindChoices, noFilter, timeChoices, wordsOf } from './item-list-query.ts'

/** A search begins when nothing was typed for this time. Milliseconds. */
const searchDelay = 200

/** Controls that select the items of the timeline. */
export function Filters() {
  const { timeline } = useGallery()
  const filter = timeline.filter.value
  const input = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  // The text of an earlier visit to the timeline.
  useEffect(() => {
    if (input.current) input.current.value = timeline.filter.value.name
    return () => clearTimeout(timer.current)
  }, [timeline])
  const show = (changes: Partial<typeof filter>) =>
    timeline.show(timeline.order.value, { ...timeline.filter.value, ...changes })
  return (
    <search class="filters" aria-label={strings.filter.label}>
      <input
        ref={input}
        type="search"
        class="search"
        autocomplete="off"
        maxLength={200}
        aria-label={strings.filter.search}
        placeholder={strings.filter.search}
        onInput={({ currentTarget }) => {
          clearTimeout(timer.current)
          const name = wordsOf(currentTarget.value)
          timer.current = setTimeout(() => {
            if (name !== timeline.filter.value.name) show({ name })
          }, searchDelay)
        }}
      />
      <Choice
        quiet
        label={strings.filter.kind}
        options={strings.filter.kinds}
        value={filter.kind ?? 'all'}
        onChoose={(kind) => show({ kind: kindChoices[kind] })}
      />
      <Choice
        quiet
        label={strings.filter.time}
        options={strings.filter.times}
        value={filter.time}
        onChoose={(time) => show({ time, from: timeChoices[time](Date.now()) })}
      />
      {isFiltered(filter) && (
        <button
          type="button"
          class="button small quiet"
          onClick={() => {
            clearTimeout(timer.current)
            if (input.current) input.current.value = ''
            timeline.show(timeline.order.value, noFilter)
          }}
        >
          <Icon name="close" size={16} />
          {strings.filter.clear}
        </button>
      )}
    </search>
  )
}
