import { Choice } from '../components/choice.tsx'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery.ts'
import { strings } from '../strings.ts'
import { isFiltered, kindChoices, noFilter, timeChoices } from './item-list-query.ts'

/** Controls that select the items of the timeline. */
export function Filters() {
  const { timeline } = useGallery()
  const filter = timeline.filter.value
  const show = (changes: Partial<typeof filter>) =>
    timeline.show(timeline.order.value, { ...filter, ...changes })
  return (
    <search class="filters" aria-label={strings.filter.label}>
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
          onClick={() => timeline.show(timeline.order.value, noFilter)}
        >
          <Icon name="close" size={16} />
          {strings.filter.clear}
        </button>
      )}
    </search>
  )
}
