"""The rules that read a guest's words, on replies of the kinds that models give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.ltm.restaurant.guest import read_complaint, read_recall, read_talk
from longspan.scenarios.ltm.restaurant.menu import Menu
from longspan.scenarios.ltm.restaurant.speaker import out_of_role

LEMONADE, TEA, MERLOT, COFFEE, BEER = DRINKS = ["Elderflower lemonade", "Mint tea", "Merlot", "Iced coffee", "Wheat beer"]
SOUP, TARTLET, PRAWNS, SALAD = (
    "Leek and potato soup",
    "Goat cheese tartlet with thyme",
    "Prawn cocktail with avocado",
    "Fennel and apple salad",
)
SALMON, RISOTTO, TAGINE, PIE = (
    "Grilled salmon with dill butter",
    "Mushroom risotto with thyme",
    "Lamb tagine with apricots",
    "Chicken pie with tarragon",
)
SCHNITZEL, MOUSSE, TART, BRULEE = "Veal schnitzel with potato salad", "Chocolate mousse", "Lemon tart", "Crème brûlée"
DISHES = [SOUP, TARTLET, PRAWNS, SALAD, SALMON, RISOTTO, TAGINE, PIE, SCHNITZEL, MOUSSE, TART, BRULEE]
MENU = Menu(DRINKS, DISHES)
QUOTE = ' "The obstacle in the path becomes the path, and no wrong turn is lost on us." - Somebody Wise'


@pytest.mark.parametrize(
    ("reply", "ordered"),
    [
        ("A mint tea, please.", [TEA]),
        ("Mint tea.", [TEA]),
        ("mint tea please", [TEA]),
        ("**Mint tea**", [TEA]),
        ("I'll have a glass of merlot, please. 🍷", [MERLOT]),
        ("I’d like the elderflower lemonade. Thank you!", [LEMONADE]),
        ("Could I please have an iced coffee?", [COFFEE]),
        ("May I have the wheat beer, please?", [BEER]),
        ("Just a beer for me.", [BEER]),
        ("Good evening! Everything looks delicious. To start, I think I'll have a glass of the elderflower lemonade, please.", [LEMONADE]),
        ("*looks over the menu carefully* Thank you. I think I'll start with a mint tea, please.", [TEA]),
        ("*smiles* The lemonade, please. *hands back the menu*", [LEMONADE]),
        ("(glances at the wine list) A merlot for me, thanks.", [MERLOT]),
        ("I would love a coffee while I look at the menu. I'm leaning towards the salmon or the tagine; which do you recommend?", [COFFEE]),
        ("Customer: I'll have the iced coffee, please.", [COFFEE]),
        ("As the guest: I'd like a merlot, please.", [MERLOT]),
        ('As the customer, I would say, "I would like a mint tea, please."', [TEA]),
        ("Waiter, I'd like to start with a lemonade, please.", [LEMONADE]),
        ("Waiter: I'll have the lemonade, please.", [LEMONADE]),
        ("Guest: \"The lemonade, please.\"", [LEMONADE]),
        ("No beer for me tonight, just the tea.", [TEA]),
        ("I don't drink wine or beer, so the lemonade, please.", [LEMONADE]),
        ("I'd prefer the lemonade over the merlot.", [LEMONADE]),
        ("Actually, make it a coffee.", [COFFEE]),
        ("I'll take the beer. Actually, no, make that the merlot.", [MERLOT]),
        ("I'll have a beer and my wife will have a tea.", [BEER, TEA]),
        ("Is the lemonade homemade? If so, I'll have that.", [LEMONADE]),
        ("Let's go with the Merlot.", [MERLOT]),
        ("How about a beer?", [BEER]),
        ("Merlot sounds good.", []),
        ("Is the lemonade homemade?", []),
        ("Which is better, the tea or the coffee?", []),
        ("What would you recommend with the salmon?", []),
        ("A glass of water, please.", []),
        ("I'd like an orange juice.", []),
        ("I'd like a rooibos tea.", []),
        ("Nothing to drink for me, thank you.", []),
        ("No merlot, no beer, nothing.", []),
        ("OK.", []),
        ("", []),
        ("The mint tea, please." + QUOTE, [TEA]),
    ],
)  # fmt: skip
def test_drinks_that_are_ordered(reply: str, ordered: list[str]) -> None:
    assert list(read_talk(MENU, reply, drinks=True).ordered) == ordered


@pytest.mark.parametrize(
    ("reply", "ordered"),
    [
        ("I'll have the grilled salmon with dill butter, please.", [SALMON]),
        ("Grilled salmon with dill butter", [SALMON]),
        ("The salmon, please.", [SALMON]),
        ("salmon", [SALMON]),
        ("I'll go with the GRILLED SALMON.", [SALMON]),
        ("I will have the *Grilled salmon with dill butter*.", [SALMON]),
        ("I'd like the **mushroom risotto**, please!", [RISOTTO]),
        ("I would like the crème brulée please", [BRULEE]),
        ("I think I'll go for the lamb.", [TAGINE]),
        ("I'm in the mood for something hearty. Could I get the chicken pie, please?", [PIE]),
        ("I'll start with the soup, and for my main course, I'd like the schnitzel, please.", [SOUP, SCHNITZEL]),
        ("For my starter, the goat cheese tartlet. As for my main, the lamb tagine with apricots really caught my eye.", [TARTLET, TAGINE]),
        ("To start, the prawn cocktail with avocado; then the risotto; and the chocolate mousse to finish.", [PRAWNS, RISOTTO, MOUSSE]),
        ("Could I have the soup followed by the pie?", [SOUP, PIE]),
        ("- Leek and potato soup\n- Chicken pie with tarragon", [SOUP, PIE]),
        ("1. Leek and potato soup\n2. Lemon tart", [SOUP, TART]),
        ("*takes a sip of the tea* Ah, lovely. I'll have the risotto, please. *closes the menu*", [RISOTTO]),
        ("I'd love the salmon, but not with the dill butter, please.", [SALMON]),
        ("Not the soup, the salad please.", [SALAD]),
        ("I don't want the soup. I'll take the fennel and apple salad.", [SALAD]),
        ("I'm allergic to prawns, so the lemon tart for me.", [TART]),
        ("I'll have the pie instead of the salmon.", [PIE]),
        ("Instead of the salmon, I'll take the pie.", [PIE]),
        ("The schnitzel rather than the tagine, please.", [SCHNITZEL]),
        ("Is the salmon fresh? If it is, I'll take it.", [SALMON]),
        ("I'm torn between the salmon and the tagine. The salmon sounds lovely. I think I'm going to go with the tagine.", [TAGINE]),
        ("The schnitzel is tempting, but I'll have the risotto.", [RISOTTO]),
        ("Could you tell me about the tagine? In the meantime I'll have the soup.", [SOUP]),
        ("I'll have the pie, and is the soup vegetarian?", [PIE]),
        ("I'll have the salmon. On second thought, the tagine, please.", [TAGINE]),
        ("I'll have the salmon. Could I also have the soup to start?", [SALMON, SOUP]),
        ("I've decided on the schnitzel.", [SCHNITZEL]),
        ("My order is the pie.", [PIE]),
        ("Salmon it is.", [SALMON]),
        ("What about the lemon tart?", [TART]),
        ("I'll have the salmon with mashed potatoes and a slice of lemon on the side.", [SALMON]),
        ("Customer: I'll have the salmon, please. And could I get the dressing for the salad on the side?", [SALMON, SALAD]),
        ("Is the salmon fresh?", []),
        ("Could you tell me more about the grilled salmon?", []),
        ("I'm torn between the salmon and the lamb tagine. Which would you recommend?", []),
        ("I'm deciding between the salmon and the pie.", []),
        ("Do you have the risotto without cheese?", []),
        ("Can I please see the menu?", []),
        ("What do you recommend?", []),
        ("I'll have the avocado toast, please.", []),
        ("I'd like the beef burger with fries.", []),
        ("I'd like the tomato soup.", []),
        ("I'll have a glass of the merlot, please.", []),
        ("I'm not hungry, nothing for me.", []),
        ("Everything looks wonderful!", []),
        ("OK.", []),
        ("The salmon, please." + QUOTE, [SALMON]),
    ],
)  # fmt: skip
def test_dishes_that_are_ordered(reply: str, ordered: list[str]) -> None:
    assert list(read_talk(MENU, reply, drinks=False).ordered) == ordered


@pytest.mark.parametrize(
    ("reply", "ordered"),
    [
        ("That's a shame. Then I'll have the risotto instead, please.", [RISOTTO]),
        ("Oh, that's too bad about the salmon. The risotto, then.", [RISOTTO]),
        ("I had my heart set on the salmon, but these things happen. Could I have the pie instead?", [PIE]),
        ("No problem, the pie please.", [PIE]),
        ("No worries! I'll switch to the lamb tagine.", [TAGINE]),
        ("I was really looking forward to the salmon. In that case, the tagine.", [TAGINE]),
        ("*sighs* I'd have loved the salmon. Let's do the schnitzel instead.", [SCHNITZEL]),
        ("You know what, the tagine sounds just as good. I'll have that instead, please.", [TAGINE]),
        ("Is the pie still available? If so, I'll switch my order to the pie.", [PIE]),
        ("Please swap the salmon for the pie.", [PIE]),
        ("Could you replace the grilled salmon with dill butter with the lemon tart?", [TART]),
        ("If the salmon is unavailable, I'll take the soup.", [SOUP]),
        ("Since the salmon is off, the soup.", [SOUP]),
        ("How about the chicken pie?", [PIE]),
        ("Could I have the risotto, and please still bring the soup first?", [RISOTTO, SOUP]),
        ("Oh no, that's disappointing. What would you recommend instead?", []),
        ("I understand. Please cancel the salmon.", []),
        ("That's disappointing. I was hoping for the salmon.", []),
    ],
)  # fmt: skip
def test_dishes_chosen_for_one_that_is_off(reply: str, ordered: list[str]) -> None:
    assert list(read_talk(MENU, reply, drinks=False).ordered) == ordered


@pytest.mark.parametrize(
    ("reply", "maybe"),
    [
        ("The salmon sounds wonderful.", [SALMON]),
        ("Perhaps the risotto?", [RISOTTO]),
        ("The tagine really caught my eye.", [TAGINE]),
        ("Is the risotto any good?", []),
    ],
)
def test_praise_is_left_to_the_judge(reply: str, maybe: list[str]) -> None:
    talk = read_talk(MENU, reply, drinks=False)

    assert talk.ordered == ()
    assert list(talk.maybe) == maybe


def test_part_of_a_name_that_fits_two_dishes_names_neither() -> None:
    menu = Menu([], ["Grilled salmon with dill butter", "Smoked salmon with capers", "Lamb tagine"])

    def ordered(reply: str) -> tuple[str, ...]:
        return read_talk(menu, reply, drinks=False).ordered

    assert ordered("The salmon, please.") == ()
    assert ordered("The smoked salmon, please.") == ("Smoked salmon with capers",)
    assert ordered("The salmon with the dill, please.") == ("Grilled salmon with dill butter",)
    assert ordered("The salmon with the dill and the smoked salmon, please.") == (
        "Grilled salmon with dill butter",
        "Smoked salmon with capers",
    )


def test_another_salad_is_not_the_salad_of_the_menu() -> None:
    salad = "Garden salad with mixed greens, cucumbers, tomatoes, and balsamic vinaigrette"
    menu = Menu([], ["Classic Caesar salad", salad, "French onion soup"])

    assert read_talk(menu, "I'd like the chef's salad with vinaigrette, please.", drinks=False).ordered == ()
    assert read_talk(menu, "I'd like the garden salad with vinaigrette, please.", drinks=False).ordered == (salad,)


def test_words_of_two_names_side_by_side_go_to_the_name_that_they_belong_to() -> None:
    rabbit, meatballs = "Rabbit in mustard sauce", "Meatballs in tomato sauce"
    menu = Menu([], [rabbit, meatballs])
    for reply in (
        "Excuse me, I ordered the rabbit in mustard sauce, not the meatballs in tomato sauce.",
        "I ordered the rabbit with the mustard sauce, not meatballs with tomato sauce!",
    ):
        assert read_complaint(menu, reply, served=meatballs, order=[rabbit]).right


@pytest.mark.parametrize(
    ("line", "ordered", "unknown"),
    [
        ("Order: Lamb tagine with apricots", [TAGINE], []),
        ("**Order:** the lamb tagine, please!", [TAGINE], []),
        ('{"say": "Hello", "order": "Lamb tagine"}', [TAGINE], []),
        ("Order:\n- Leek and potato soup\n- Lamb tagine with apricots", [SOUP, TAGINE], []),
        ("Order: Leek and potato soup and Lamb tagine with apricots", [SOUP, TAGINE], []),
        ("Order: Lamb tagine (not the soup)", [TAGINE], []),
        ("Order: instead of the soup, the lamb tagine", [TAGINE], []),
        ("The soup? No.\nOrder: Lamb tagine, with extra apricots", [TAGINE], []),
        ("Order: Lamb tagine or the soup", [], []),
        ("I'd love the soup.\nOrder: nothing", [], []),
        ("Order: N/A", [], []),
        ("Order: no further changes, thank you", [], []),
        ("Order: Lamb tagine, fish and chips", [TAGINE], ["fish", "chips"]),
        ("Order: Merlot", [], []),
    ],
)
def test_closing_lines(line: str, ordered: list[str], unknown: list[str]) -> None:
    talk = read_talk(MENU, line, drinks=False)

    assert (sorted(talk.ordered), list(talk.unknown)) == (sorted(ordered), unknown)
    assert talk.before is not None


@pytest.mark.parametrize(
    ("reply", "ordered"),
    [
        ("I'd like to try something new, please.", []),
        ("I'd like something vegan, please.", []),
        ("Some french fries, please.", []),
        ("A side of fruit, please.", []),
        ("A plate of the stew, please.", ["Vegan lentil stew, served over rice"]),
        ("The french broth, please.", ["French onion broth"]),
        ("A buckwheat bowl for me.", ["Buckwheat bowl"]),
        ("The stir-fry, please.", ["Vegetable stir-fry"]),
        ("I'd like the kebab plate.", ["Kebab plate"]),
    ],
)
def test_the_kind_of_kitchen_or_of_plate_does_not_name_a_dish(reply: str, ordered: list[str]) -> None:
    menu = Menu(
        [],
        [
            "French onion broth",
            "Vegan lentil stew, served over rice",
            "Buckwheat bowl",
            "Vegetable stir-fry",
            "Kebab plate",
            "New style cheesecake",
        ],
    )

    assert list(read_talk(menu, reply, drinks=False).ordered) == ordered


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n ",
        "...",
        "As an AI language model, I cannot drink, but the lemonade is a fine choice.",
        "I'm a helpful AI assistant and don't eat or drink, but I can recommend a beverage.",
        "I don't consume food or drink, but I am happy to help you with your order.",
        "I'm sorry, but I can't roleplay.",
        "I'm just a virtual assistant; I can't order drinks.",
        "Waiter: Good evening, what may I bring you?\nGuest: The lemonade, please.",
        "I'll have the lemonade, please.\n\nWaiter: Coming, sir.\n\nGuest: Thank you.",
        "As the customer: I'll have the merlot. *Waiter response:* Certainly, I will bring it.",
        "The lemonade. Assistant (as Customer): Thanks. Waiter: My pleasure.",
        "**Guest:** The tea, please.\n**Waiter:** Of course.",
        "Here is your lemonade. What would you like to eat?",
        "Excellent choice, sir! One lemonade coming right up.",
        "Welcome to our restaurant! How can I help you today?",
    ],
)
def test_replies_that_are_not_a_guests(reply: str) -> None:
    assert out_of_role(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "The lemonade, please.",
        "*smiles at the waiter* The lemonade, please.",
        "Waiter, the lemonade please!",
        "Waiter: I'll have the lemonade, please.",
        "I can't eat nuts, and I don't drink alcohol, so the lemonade, please.",
        "I don't eat meat. The risotto, please.",
        "Customer: The lemonade, please.",
        "Thank you for being such an attentive waiter: this is lovely.",
        "Could I ask the waiter for the lemonade?",
        "The lemonade, please." + QUOTE,
    ],
)
def test_replies_that_are_a_guests(reply: str) -> None:
    assert out_of_role(reply) is None


@pytest.mark.parametrize(
    ("reply", "noticed"),
    [
        ("Excuse me, I ordered the risotto, not the lamb tagine.", True),
        ("I'm sorry, but I think there may have been a mix-up. I had asked for the mushroom risotto.", True),
        ("Thank you! But I believe there was a mix-up; I ordered the risotto.", True),
        ("I didn't order the tagine. I ordered the risotto.", True),
        ("This isn't what I ordered.", True),
        ("That's not mine.", True),
        ("That is not my dish, I'm afraid.", True),
        ("Excuse me, I don't recall ordering the tagine.", True),
        ("*looks confused* I'm sorry, I believe this is the wrong dish.", True),
        ("Wait, there's been a mistake.", True),
        ("Actually, I had ordered the risotto. Could you please correct that?", True),
        ("Just to clarify, I asked for the risotto rather than the tagine. Could I please have it?", True),
        ("Hmm, I was expecting the risotto.", True),
        ("Sorry, could you bring me the risotto instead?", True),
        ("Oh, this isn't the risotto I ordered. Never mind, it looks delicious, I'll keep it!", True),
        ("I first ordered the salmon, which was off, so I switched to the risotto. I don't think I ordered the tagine.", True),
        ("Thank you, but I ordered the risotto.", True),
        ("There must be some confusion with another table.", True),
        ("Sorry, but where is my risotto? This looks like the lamb tagine.", True),
        ("That's not the risotto.", True),
        ("This doesn't look like risotto.", True),
        ("I don't want the lamb tagine.", None),
        ("Excuse me, I ordered the risotto, not the lamb tagine." + QUOTE, True),
        ("I ordered the chicken pie, this is the wrong dish.", False),
        ("I didn't order this, I ordered the lemon tart.", False),
        ("Thank you very much! It looks delicious.", False),
        ("Thank you.", False),
        ("Yes, everything is perfect, no mistake at all.", False),
        ("Nothing wrong here, thank you!", False),
        ("Thank you, the lamb tagine looks wonderful, just what I ordered.", False),
        ("Could I have some pepper, please?", False),
        ("Not bad at all!", False),
        ("No problem, thank you.", False),
        ("OK.", False),
        ("Thank you, that looks delicious." + QUOTE, False),
        ("Thank you, the risotto looks delicious.", False),
    ],
)  # fmt: skip
def test_noticing_the_wrong_dish(reply: str, noticed: bool | None) -> None:
    complaint = read_complaint(MENU, reply, served=TAGINE, order=[RISOTTO])

    assert complaint.right is noticed, complaint.why


@pytest.mark.parametrize(
    ("reply", "noticed"),
    [
        ("The soup looks great, but I ordered the risotto, not the tagine.", True),
        ("Thank you, the soup is just right. However, there's a mix-up with the main course.", True),
        ("Thank you, the soup looks lovely, and so does the tagine.", False),
    ],
)
def test_noticing_one_wrong_dish_of_two(reply: str, noticed: bool) -> None:
    complaint = read_complaint(MENU, reply, served=TAGINE, order=[SOUP, RISOTTO])

    assert (complaint.lean if complaint.right is None else complaint.right) is noticed, complaint.why


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("It was the mint tea. Thank you, another one please.", True),
        ("Mint tea.", True),
        ("mint tea", True),
        ("I was having the tea, thank you.", True),
        ("I'll have another mint tea, please.", True),
        ("That's very kind of you! *smiles* I was enjoying the mint tea, so I'd love another one.", True),
        ("I had the mint tea, but I'd prefer the merlot this time.", True),
        ("Not the merlot, the tea.", True),
        ("No thank you, one mint tea was enough.", True),
        ("Was it the mint tea?", True),
        ("The mint tea, please." + QUOTE, True),
        ("I was having the merlot.", False),
        ("The lemonade, I believe.", False),
        ("I had the merlot, but now I'd like the tea.", False),
        ("Yes, please! The same again.", False),
        ("I don't remember.", False),
        ("A glass of water.", False),
        ("OK.", False),
        ("", False),
        ("The tea or the merlot, I am not sure.", False),
        ("Elderflower lemonade, mint tea, merlot, iced coffee, wheat beer.", False),
    ],
)  # fmt: skip
def test_recalling_the_drink(reply: str, right: bool | None) -> None:
    recall = read_recall(MENU, reply, drinks=[TEA])

    assert recall.right is right, recall.why
    assert recall.lean is bool(right)


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([*DRINKS, *DISHES, "not", "I'll have", "?", "*", '"', "(", "Waiter:", "\n", ",", "- "])).map(" ".join)
)
def test_no_reply_raises(reply: str) -> None:
    read_talk(MENU, reply, drinks=True)
    read_talk(MENU, reply, drinks=False)
    read_complaint(MENU, reply, served=TAGINE, order=[RISOTTO])
    read_recall(MENU, reply, drinks=[TEA])
    out_of_role(reply)
